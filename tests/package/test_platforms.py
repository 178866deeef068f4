"""What only some operating systems have is in `hlo/system/`, one file for each; the rest of the library is portable.

The interface is the same in all files, and no other module names a system call, a file of the system, a module of
Python that one system lacks, or a type of C whose size depends on it.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hloom.hlo.system import darwin, interface, linux, posix, windows

from support import source_tree

SYSTEMS = (linux.Linux, darwin.Darwin, windows.Windows, posix.Posix)

MODULES = frozenset(
    ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "posix", "nt", "msvcrt", "winreg", "_winapi")
)
"""Modules of Python that only some systems have."""

ATTRIBUTES = {
    "os": r"fork|forkpty|register_at_fork|sched_\w+|(get|set)(e?[ug]id|pgid|sid|groups|loadavg)|uname|sysconf|name|"
    r"(l?ch(own|flags)|fchown|mkfifo|statvfs|sync|nice|waitpid|wait\w*|kill|killpg)|O_(?!RDONLY|WRONLY|RDWR|CREAT)\w+",
    "signal": r"pthread_\w+|valid_signals|sig\w+|alarm|setitimer|SIG(?!INT\b|_)\w+|SIG_\w+",
    "mmap": r"MAP_\w+|PROT_\w+|MADV_\w+|mmap",
    "sys": r"platform|getwindowsversion|abiflags",
    "platform": r"system|uname|release|libc_ver|mac_ver|win32_\w+",
    "ctypes": r"c_u?long|WinDLL|windll|cdll|OleDLL|WinError|wintypes",
    "socket": r"AF_UNIX",
    "time": r"clock_\w+|CLOCK_\w+",
    "stat": r"S_IW(GRP|OTH)|S_ISVTX",
}
"""By module: names that only some systems have, or that mean something else there."""

TEXTS = re.compile(
    r"^/(proc|sys|dev|tmp|etc|usr|lib)\b|\b(pthread|sched|futex|mach)_\w+|"
    r"\b(dl(sym|open|_iterate_phdr)|gettid|nanosleep|mprotect|madvise|munmap|futex|clock_gettime|sysctl\w*)\b|"
    r"\b(VirtualAlloc|kernel32|ucrtbase|libSystem|getaffinity)\b|\.(so|dylib|dll)\b|"
    r"\blib(c|m|gcc|pthread)\b|\x7fELF|^(fork|forkserver)$|^XDG_|^LOCALAPPDATA$"
)
"""In strings of code, which are names of functions, libraries, files and environment variables."""

EXCEPTIONS = {
    ("hlo/collectives/workers.py", "ctypes.c_ulong"): "CPython's own unsigned long, of PyThreadState_SetAsyncExc",
    ("numba_backend/runtime/loader.py", "\x7fELF"): "the format that it reads, where the system loads images",
}
"""By module: what may be there, and why. One that is gone must leave the list."""


def names(file: str, tree: ast.Module) -> Iterator[str]:
    """What the code of a module takes from few systems."""
    docstrings = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for first in body if isinstance(body, list) else ():
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.add(first.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (f"import {alias.name}" for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if node.module in MODULES:
                yield f"import {node.module}"
            pattern = ATTRIBUTES.get(node.module or "", "$^")
            yield from (f"{node.module}.{a.name}" for a in node.names if re.fullmatch(pattern, a.name))
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and re.fullmatch(ATTRIBUTES.get(node.value.id, "$^"), node.attr):
                yield f"{node.value.id}.{node.attr}"
            elif node.attr in ("st_uid", "st_gid"):
                yield node.attr
        elif isinstance(node, ast.Call) and re.fullmatch(r"(\w+\.)?\w*DLL\(None\b.*\)", ast.unparse(node)):
            yield "ctypes.CDLL(None)"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("read_text", "write_text") and "encoding" not in {k.arg for k in node.keywords}:
                yield f"{node.func.attr} without encoding"
        elif isinstance(node, ast.Constant) and node not in docstrings:
            text = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
            if isinstance(text, str):
                if text in MODULES:
                    yield f"import {text}"
                yield from (found.group() for found in TEXTS.finditer(text) if len(text) < 2000 or "_" in found.group())


def test_other_modules_are_portable(root: Path) -> None:
    found, used = [], set()
    for file in sorted(source_tree.modules(root)):
        path = file.removeprefix("hloom/")
        if path.startswith("hlo/system/"):
            continue
        for name in names(path, ast.parse((root / file).read_text())):
            if (path, name) in EXCEPTIONS:
                used.add((path, name))
            else:
                found.append(f"{path}: {name}")
    assert found == [], "put it into hlo/system/"
    assert used == EXCEPTIONS.keys()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import fcntl", "import fcntl"),
        ("import_module('grp')", "import grp"),
        ("from os import fork", "os.fork"),
        ("path.read_text()", "read_text without encoding"),
        ("os.sched_getaffinity(0)", "os.sched_getaffinity"),
        ("os.O_NOFOLLOW", "os.O_NOFOLLOW"),
        ("open('/proc/cpuinfo')", "/proc"),
        ("f(mmap.MAP_PRIVATE)", "mmap.MAP_PRIVATE"),
        ("mmap.PAGESIZE + os.getpid() + signal.SIGINT + os.O_WRONLY", None),
        ("'''a docstring about /proc and futex'''", None),
        ("ctypes.CDLL(None)", "ctypes.CDLL(None)"),
        ("ctypes.CDLL(path)", None),
        ("library['pthread_create']", "pthread_create"),
        ("ctypes.PyDLL('libgcc_s.so.1')", ".so"),
        ("if sys.platform == 'linux': pass", "sys.platform"),
        ("status.st_uid", "st_uid"),
        ("ctypes.c_long", "ctypes.c_long"),
        ("get_context('fork')", "fork"),
        ("code[:4] == b'\\x7fELF'", "\x7fELF"),
    ],
)
def test_what_is_not_portable_is_found(code: str, expected: str | None) -> None:
    assert list(names("x.py", ast.parse(code)))[:1] == ([] if expected is None else [expected])


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.__name__)
def test_every_system_has_the_whole_interface_and_nothing_else(system: type[interface.System]) -> None:
    assert not inspect.isabstract(system)
    public = {name for name in dir(system) if not name.startswith("_")}
    expected = {name for name in dir(interface.System) if not name.startswith("_")}
    expected |= {name for name in interface.System.__annotations__ if not name.startswith("_")}
    assert public - {"clock"} == expected
    assert system.native_names.keys() == posix.Posix.native_names.keys()
    for name in public:
        ours, theirs = getattr(system, name), getattr(interface.System, name, None)
        if callable(theirs):
            assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters), name


def test_the_page_names_every_part_of_the_interface(root: Path) -> None:
    page = (root / "docs" / "architecture" / "platforms.md").read_text()
    missing = [name for name in interface.System.__dict__ if not name.startswith("_") and f"`{name}`" not in page]
    missing += [name for name in interface.System.__annotations__ if f"`{name}`" not in page]
    assert missing == []
