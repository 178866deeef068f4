#!/usr/bin/env python3
"""hloom on Linux on aarch64, under emulation: a folder with Debian's Python and wheels, and a command that runs in it.

    python tools/arm64.py setup                        # once, two minutes: downloads 220 MB, unpacks 1.2 GB
    python tools/arm64.py check                        # the smoke tests, on a copy of this checkout; prints a table
    python tools/arm64.py check tests/nn/test_nn.py    # these files
    python tools/arm64.py check --continue             # those that have not passed yet, in this or an earlier check
    python tools/arm64.py run -m hloom doctor          # Python with these arguments, on this checkout

It needs apt and pip, neither root nor a chroot: QEMU, of Debian too, looks for files of the emulated system in the
folder first (`-L`), and what is not there is this machine's. Tests that compile C need gcc-aarch64-linux-gnu and
g++-aarch64-linux-gnu. HLOOM_ARM64 is the folder, by default arm64 in hloom's cache.

Emulation says whether code is right. It says nothing about speed, and little about the order of memory accesses, which
on x86-64 is stronger than on ARM.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import emulation
import places
from places import Place, starter, write_program

FOLDER = Path(os.environ.get("HLOOM_ARM64") or Path.home() / ".cache" / "hloom" / "arm64")
PYTHON = "3.13"
DEBIAN = (
    f"python{PYTHON}-minimal", f"libpython{PYTHON}-minimal", f"libpython{PYTHON}-stdlib", f"libpython{PYTHON}", "libc6",
    "libgcc-s1", "libstdc++6", "libgomp1", "zlib1g", "libexpat1", "libssl3t64", "libffi8", "libsqlite3-0", "liblzma5",
    "libbz2-1.0", "libncursesw6", "libtinfo6", "libreadline8t64", "libuuid1", "libzstd1",
)  # fmt: skip
"""Debian's packages: Python and what it is linked with."""
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
"""Of wheels, the newest first."""
PROCESSOR = """\
processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x4
CPU part\t: 0xd0b
CPU revision\t: 1

"""
"""/proc/cpuinfo of a Cortex-A76, which QEMU emulates: it would show this machine's."""
CPU = "cortex-a76"
SYSTEM, EMULATOR, PACKAGES = FOLDER / "system", FOLDER / "emulator", FOLDER / "packages"
TRANSLATED = 512
"""MiB for the code that QEMU translates: with its own 128, a process that compiles takes a tenth more time."""
PATIENCE = "10"
"""Tests wait so many times longer for processes that they start."""
QEMU = f'"{EMULATOR}/usr/bin/qemu-aarch64" -cpu {CPU} -L "{SYSTEM}"'
COMPILERS = {"cc": "gcc", "gcc": "gcc", "c++": "g++", "g++": "g++"}
COMPILER = """\
#!/bin/sh
# The compiler for aarch64. A program that it links is started by QEMU.
aarch64-linux-gnu-{compiler} "$@" || exit
case " $* " in *" -c "* | *" -shared "* | *" -E "* | *" -S "* | *" --version "*) exit ;; esac
out=a.out before=
for word; do [ "$before" = -o ] && out=$word; before=$word; done
mv "$out" "$out.elf"
printf '#!/bin/sh\\nexec %s "%s" "$@"\\n' '{emulator}' "$(realpath "$out.elf")" >"$out"
chmod +x "$out"
"""


def setup() -> None:
    """Make the folder. What is there already is kept."""
    if not (SYSTEM / "usr" / "bin" / f"python{PYTHON}").exists():
        emulation.unpack_debian(SYSTEM, "arm64", DEBIAN)
        # Debian keeps libraries in /usr/lib, and finds the loader by a link from /lib.
        if not (SYSTEM / "lib").exists():
            (SYSTEM / "lib").symlink_to("usr/lib")
    if not (EMULATOR / "usr" / "bin" / "qemu-aarch64").exists():
        # QEMU 7.2, of the Debian before, ends some children of forks where other threads ran.
        machine = {"x86_64": "amd64"}.get(platform.machine(), platform.machine())
        emulation.unpack_debian(EMULATOR, machine, ["qemu-user"])
    (SYSTEM / "proc").mkdir(exist_ok=True)
    (SYSTEM / "proc" / "cpuinfo").write_text(PROCESSOR * 2)
    if not (PACKAGES / "numba").exists():
        emulation.install_wheels(PACKAGES, PYTHON, PLATFORMS)
    command = f'{QEMU} -0 "{FOLDER}/python" "{SYSTEM}/usr/bin/python{PYTHON}"'
    write_program(FOLDER / "python", starter(command, SYSTEM / "usr", PACKAGES))
    for name, compiler in COMPILERS.items():
        write_program(FOLDER / "compilers" / name, COMPILER.format(compiler=compiler, emulator=QEMU))


def main() -> int:
    variables = {
        "PATH": f"{FOLDER / 'compilers'}{os.pathsep}{os.environ['PATH']}", "QEMU_TB_SIZE": str(TRANSLATED),
        "HLOOM_TESTS_PATIENCE": PATIENCE,
    }  # fmt: skip
    place = Place(folder=FOLDER, setup=setup, variables=variables)
    unfit = "this is aarch64 already" if platform.machine() == "aarch64" else ""
    return places.main(place, __doc__, unfit)


if __name__ == "__main__":
    sys.exit(main())
