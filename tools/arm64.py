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

import argparse
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import emulation
from emulation import ROOT

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
    _write_program(FOLDER / "python", _starter())
    for name, compiler in COMPILERS.items():
        _write_program(FOLDER / "compilers" / name, COMPILER.format(compiler=compiler, emulator=QEMU))
    run(["-c", "import sys, platform, hloom; print(platform.machine(), sys.version.split()[0], hloom.__version__)"])


def _write_program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def _starter() -> str:
    """A shell script that is Python, for processes that Python starts, too: `sys.executable` is its path."""
    program = SYSTEM / "usr" / "bin" / f"python{PYTHON}"
    return (
        "#!/bin/sh\n"
        f'export PYTHONHOME="{SYSTEM}/usr"\n'
        f'export PYTHONPATH="$HLOOM_CHECKOUT:{PACKAGES}${{PYTHONPATH:+:$PYTHONPATH}}"\n'
        f'exec {QEMU} -0 "{FOLDER}/python" "{program}" "$@"\n'
    )


def environment(checkout: Path) -> dict[str, str]:
    """For processes that import hloom from a checkout."""
    kernels = os.environ.get("HLOOM_CACHE_DIR", str(FOLDER / "kernels"))
    given = {
        **os.environ, "HLOOM_CACHE_DIR": kernels, "PYTHONPYCACHEPREFIX": str(FOLDER / "byte-code"),
        "HLOOM_CHECKOUT": str(checkout), "PATH": f"{FOLDER / 'compilers'}{os.pathsep}{os.environ['PATH']}",
        "QEMU_TB_SIZE": str(TRANSLATED), "HLOOM_TESTS_PATIENCE": PATIENCE,
    }  # fmt: skip
    given.pop("PYTHONDONTWRITEBYTECODE", None)  # each process would compile all modules, in many seconds
    return given


def run(arguments: list[str]) -> int:
    """Run Python in this checkout; its exit code."""
    return subprocess.run([str(FOLDER / "python"), *arguments], cwd=ROOT, env=environment(ROOT)).returncode


def check(tests: list[str], goes_on: bool) -> int:
    """Run files of tests on a copy of this checkout; 1 if a test failed."""
    copy = FOLDER / "checkout"
    emulation.copy_checkout(copy)
    command = [str(FOLDER / "python"), "-m", "pytest"]
    return emulation.check(command, copy, FOLDER / "results", tests, environment(copy), goes_on)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("setup", help="make the folder")
    checks = commands.add_parser("check", help="run tests on a copy of this checkout, and print a table")
    checks.add_argument("--continue", dest="goes_on", action="store_true", help="without files that passed before")
    checks.add_argument("files", nargs="*", help="of tests; by default those of tests/smoke.txt")
    python = commands.add_parser("run", help="run Python on this checkout", prefix_chars="\0", add_help=False)
    python.add_argument("arguments", nargs=argparse.REMAINDER)  # options, too, are Python's
    options = parser.parse_args()
    if platform.machine() == "aarch64":
        parser.error("this is aarch64 already")
    missing = [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]
    if missing:
        parser.error(f"{', '.join(missing)}: not installed")
    if options.command == "setup":
        setup()
        return 0
    if not (FOLDER / "python").exists():
        parser.error("run `python tools/arm64.py setup` first")
    if options.command == "run":
        return run(options.arguments)
    return check(options.files or emulation.smoke_tests(), options.goes_on)


if __name__ == "__main__":
    sys.exit(main())
