#!/usr/bin/env python3
"""hloom on Linux on aarch64, under emulation: a folder with Debian's Python and wheels, and a command that runs in it.

    python tools/arm64.py setup                        # once, some minutes: downloads 150 MB, unpacks 700 MB
    python tools/arm64.py run -m hloom doctor          # Python with these arguments, on this checkout
    python tools/arm64.py run -m pytest -q tests/nn

It needs qemu-user, apt and pip, neither root nor a chroot: QEMU looks for files of the emulated system in the folder
first (`-L`), and what is not there is this machine's. HLOOM_ARM64 is the folder, by default arm64 in hloom's cache.

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
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(os.environ.get("HLOOM_ARM64") or Path.home() / ".cache" / "hloom" / "arm64")
MIRROR = "http://deb.debian.org/debian"
SUITE, PYTHON = "trixie", "3.13"
DEBIAN = (
    f"python{PYTHON}-minimal", f"libpython{PYTHON}-minimal", f"libpython{PYTHON}-stdlib", f"libpython{PYTHON}", "libc6",
    "libgcc-s1", "libstdc++6", "libgomp1", "zlib1g", "libexpat1", "libssl3t64", "libffi8", "libsqlite3-0", "liblzma5",
    "libbz2-1.0", "libncursesw6", "libtinfo6", "libreadline8t64", "libuuid1", "libzstd1",
)  # fmt: skip
"""Debian's packages: Python and what it is linked with."""
WHEELS = ("numpy", "scipy", "numba", "llvmlite", "ml_dtypes", "optree", "opt_einsum", "pytest", "hypothesis")
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


def setup() -> None:
    """Make the folder. What is there already is kept."""
    system = FOLDER / "system"
    if not (system / "usr" / "bin" / f"python{PYTHON}").exists():
        _unpack_debian(system)
    (system / "proc").mkdir(exist_ok=True)
    (system / "proc" / "cpuinfo").write_text(PROCESSOR * 2)
    packages = FOLDER / "packages"
    if not (packages / "numba").exists():
        chosen = [word for name in PLATFORMS for word in ("--platform", name)]
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages), "--no-compile"]
        subprocess.run(
            [*command, "--only-binary=:all:", "--python-version", PYTHON, "--implementation", "cp", *chosen, *WHEELS],
            check=True,
        )
    python = FOLDER / "python"
    python.write_text(_starter(system, packages))
    python.chmod(0o755)
    run(["-c", "import sys, platform, hloom; print(platform.machine(), sys.version.split()[0], hloom.__version__)"])


def _unpack_debian(system: Path) -> None:
    """Download packages for arm64 with settings of apt's own, and unpack them."""
    state = FOLDER / "apt"
    for name in ("lists/partial", "cache/archives/partial", "debs"):
        (state / name).mkdir(parents=True, exist_ok=True)
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    signed = f"signed-by={keys}" if os.path.exists(keys) else "trusted=yes"
    (state / "sources.list").write_text(f"deb [arch=arm64 {signed}] {MIRROR} {SUITE} main\n")
    (state / "status").write_text("")
    settings = {
        "APT::Architecture": "arm64", "APT::Architectures::": "arm64", "Dir::Etc::sourcelist": state / "sources.list",
        "Dir::Etc::sourceparts": "-", "Dir::State::lists": state / "lists", "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache", "APT::Sandbox::User": "root", "Acquire::Languages": "none",
    }  # fmt: skip
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    subprocess.run(["apt-get", *options, "update", "-qq"], check=True)
    subprocess.run(["apt-get", *options, "download", "-qq", *DEBIAN], check=True, cwd=state / "debs")
    for package in sorted((state / "debs").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, system], check=True)
    # Debian keeps libraries in /usr/lib, and finds the loader by a link from /lib.
    if not (system / "lib").exists():
        (system / "lib").symlink_to("usr/lib")


def _starter(system: Path, packages: Path) -> str:
    """A shell script that is Python, for processes that Python starts, too: `sys.executable` is its path."""
    program = system / "usr" / "bin" / f"python{PYTHON}"
    paths = os.pathsep.join(map(str, (ROOT, packages)))
    return (
        "#!/bin/sh\n"
        f'export PYTHONHOME="{system}/usr" PYTHONPATH="{paths}${{PYTHONPATH:+:$PYTHONPATH}}"\n'
        f'exec qemu-aarch64 -cpu {CPU} -L "{system}" -0 "{FOLDER}/python" "{program}" "$@"\n'
    )


def run(arguments: Sequence[str]) -> int:
    """Run Python in this checkout; its exit code."""
    environment = {**os.environ, "HLOOM_CACHE_DIR": os.environ.get("HLOOM_CACHE_DIR", str(FOLDER / "kernels"))}
    environment["PYTHONPYCACHEPREFIX"] = str(FOLDER / "byte-code")
    return subprocess.run([str(FOLDER / "python"), *arguments], cwd=ROOT, env=environment).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("setup", "run"))
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if platform.machine() == "aarch64":
        parser.error("this is aarch64 already")
    missing = [name for name in ("qemu-aarch64", "apt-get", "dpkg-deb") if shutil.which(name) is None]
    if missing:
        parser.error(f"{', '.join(missing)}: not installed; apt-get install qemu-user")
    if options.command == "setup":
        setup()
        return 0
    if not (FOLDER / "python").exists():
        parser.error("run `python tools/arm64.py setup` first")
    return run(options.arguments)


if __name__ == "__main__":
    raise SystemExit(main())
