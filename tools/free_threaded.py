#!/usr/bin/env python3
"""hloom on Python 3.14 without a GIL (3.14t): a folder with the interpreter and wheels, and a command that runs in it.

    python tools/free_threaded.py setup                        # once, two minutes: downloads 200 MB, unpacks 700 MB
    python tools/free_threaded.py check                        # tests of threads, jit, the store, loops; prints a table
    python tools/free_threaded.py check tests/nn/test_nn.py    # these files
    python tools/free_threaded.py run -m hloom doctor          # Python with these arguments, on this checkout

It needs apt, pip and a compiler of C, on Linux on x86-64. HLOOM_FREE_THREADED is the folder, by default free-threaded
in hloom's cache.

No package of Debian or of PyPI is this interpreter, so it is put together:

* freeze-core, of PyPI, makes programs of Python files. Its wheel for cp314t contains a program in which all of CPython
  3.14t is linked, and CPython's extension modules. Debian's packages of Python 3.14 contain the library in Python,
  which is the same for both builds.
* That program would run the files that freeze-core puts beside it. A library of one function, loaded before, starts
  CPython's own main function in place of the program's.
* Debian's description of the build (`sysconfig`) is that of the build with a GIL: a file of a few lines corrects it.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import emulation
import places
from places import Place, starter, write_program

FOLDER = Path(os.environ.get("HLOOM_FREE_THREADED") or Path.home() / ".cache" / "hloom" / "free-threaded")
PYTHON, ABI = "3.14", "cp314t"
SUITE = "forky"
LIBRARY = (f"libpython{PYTHON}-minimal", f"libpython{PYTHON}-stdlib")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
"""Of wheels, the newest first."""
DEBIAN, CORE, PACKAGES, HOME = FOLDER / "debian", FOLDER / "core", FOLDER / "packages", FOLDER / "home"
MAIN = """\
#define _GNU_SOURCE
#include <dlfcn.h>

typedef int main_t(int, char **, char **);
typedef int start_t(main_t *, int, char **, void *, void *, void *, void *);

/* The C library's own function calls a program's main function. This one gives it CPython's, if the program has it. */
int __libc_start_main(main_t *main, int count, char **words, void *first, void *last, void *loader, void *stack) {
  main_t *python = (main_t *)dlsym(RTLD_DEFAULT, "Py_BytesMain");
  start_t *start = (start_t *)dlsym(RTLD_NEXT, "__libc_start_main");
  return start(python ? python : main, count, words, first, last, loader, stack);
}
"""
SYSTEM = "x86_64-linux-gnu"
BUILD = f"""\
import importlib

build_time_vars = {{
    **importlib.import_module("_sysconfigdata__linux_{SYSTEM}").build_time_vars,
    "Py_GIL_DISABLED": 1,
    "ABIFLAGS": "t",
    "SOABI": "cpython-314t-{SYSTEM}",
    "EXT_SUFFIX": ".cpython-314t-{SYSTEM}.so",
}}
"""
TESTS = (
    "tests/tracer/test_many_threads.py", "tests/tracer/test_jit.py", "tests/tracer/test_dispatch.py",
    "tests/tracer/test_array.py", "tests/autodiff/test_grad.py", "tests/nn/test_nn.py",
    "tests/numba_backend/runtime/test_kernel_store.py", "tests/numba_backend/runtime/test_thread_pool.py",
    "tests/numba_backend/runtime/test_program_table.py", "tests/numba_backend/native_loops/test_native_loops.py",
)  # fmt: skip
"""What threads share: caches, dispatch, the store, the pool, the memory of programs."""


def setup() -> None:
    """Make the folder. What is there already is kept."""
    program = CORE / "freeze_core" / "bases" / f"console-cpython-314t-{SYSTEM}"
    if not program.exists():
        emulation.download_wheels(CORE, PYTHON, PLATFORMS, ["freeze-core"], ABI, whole=False)
    library = HOME / "lib" / f"python{PYTHON}t"
    if not library.exists():
        emulation.unpack_debian(DEBIAN, "amd64", LIBRARY, SUITE)
        made = library.with_suffix(".new")
        shutil.rmtree(made, ignore_errors=True)
        shutil.copytree(DEBIAN / "usr" / "lib" / f"python{PYTHON}", made, symlinks=True)
        shutil.rmtree(made / "lib-dynload", ignore_errors=True)
        shutil.copytree(CORE / "freeze_core" / "lib", made / "lib-dynload")
        (made / f"_sysconfigdata_t_linux_{SYSTEM}.py").write_text(BUILD)
        made.rename(library)
    first = FOLDER / "main.so"
    source = first.with_suffix(".c")
    source.write_text(MAIN)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", first, source], check=True)
    if not (PACKAGES / "numba").exists():
        emulation.install_wheels(PACKAGES, PYTHON, PLATFORMS, ABI)
    libraries = f'LD_LIBRARY_PATH="{CORE}/freeze_core.libs${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
    command = f'-a "{FOLDER}/python" "{program}"'  # sys.executable is this script
    script = starter(command, HOME, PACKAGES, libraries, f'LD_PRELOAD="{first}"')
    write_program(FOLDER / "python", script)


def main() -> int:
    place = Place(
        folder=FOLDER, setup=setup, variables={}, programs=("apt-get", "dpkg-deb", "cc"), tests=lambda: TESTS
    )
    here = (platform.system(), platform.machine())
    unfit = "" if here == ("Linux", "x86_64") else "the interpreter is for Linux on x86-64"
    return places.main(place, __doc__, unfit)


if __name__ == "__main__":
    sys.exit(main())
