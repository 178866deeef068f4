"""Programs run on systems that lack something, and on models of macOS and Windows (`support/lacking.py`)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hloom.hlo.system import system, windows

from support import lacking
from support.interrupted import START

pytestmark = pytest.mark.skipif(system.name != "linux", reason="it takes away what Linux has")

PROGRAM = """
import sys
from support import lacking
if sys.argv[1]:
    lacking.install(sys.argv[1])
import json, os, threading, time, warnings
warnings.simplefilter("ignore")
import hloom, hloom.numpy as jnp, numpy as np
from hloom.hlo.system import system, windows
from hloom.hlo.timeline.spans import Track
from hloom.numba_backend import machine
from hloom.numba_backend.runtime import store, threads
from hloom.tracer.profiling.timeline import ProfileOptions, Session

x = np.linspace(0, 1, 1 << 16, dtype="f4").reshape(256, 256)
program = hloom.jit(lambda x: jnp.sin(x) @ x + jnp.cumsum(x, 0))
loop = hloom.jit(lambda x: hloom.lax.while_loop(lambda s: s[0] < 50, lambda s: (s[0] + 1, s[1] * 0.9 + 1), (0, x))[1])
add_one = hloom.jit(lambda x: x + 1)
seconds = 0 if sys.argv[1] == "threads" or threads.get_num_threads() == 1 else 60
end = time.monotonic() + seconds
kernels, inside, others = [], True, False
while not kernels or not others and time.monotonic() < end:  # on a busy machine a worker comes late
    session = Session(ProfileOptions())
    session.start()
    for _ in range(20):
        found = [program(x), loop(x)]
        time.sleep(0.002)  # the workers go to sleep, and must be woken
    big = add_one(np.zeros(6 << 20, "f4"))  # in huge pages
    timeline = session.stop()
    kernels = [s for s in timeline.spans if s.track is Track.KERNELS]
    inside &= all(timeline.started <= s.start <= s.end <= timeline.ended for s in kernels)
    others = any(s.thread != threading.get_native_id() for s in kernels)
print(json.dumps({
    "sums": [float(np.asarray(f, "f8").sum()) for f in found], "big": float(big[-1]), "kernels": len(kernels) > 20,
    "inside": inside, "mine": any(s.thread == threading.get_native_id() for s in kernels), "others": others,
    "name": system.name, "threads": threads.get_num_threads(), "description": system.cpu_description(),
    "caches": dict(system.cache_sizes()), "resident": system.resident_bytes(), "folder": store.default_folder(),
    "vectors": machine.this_machine().registers, "compiled": store.default_store().statistics.compiled,
    "delivered": store.default_store().statistics.delivered, "llvm": "llvmlite" in sys.modules,
    "calls": sum(library.model_calls() for library in lacking.MODELS),
}))
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("gcc") and not shutil.which("cc"):
        pytest.skip("models of systems are in C")
    return tmp_path_factory.mktemp("models")


def environment(models: Path, root: Path, store: str) -> dict[str, str]:
    return {
        **os.environ, "PYTHONPATH": f"{root / 'tests'}{os.pathsep}{root}", "HLOOM_TESTS_MODELS": str(models),
        "HLOOM_CACHE_DIR": store, "HLOOM_NUM_THREADS": "2",
    }  # fmt: skip


def run(name: str, models: Path, root: Path, store: str = "off") -> dict[str, Any]:
    command = [sys.executable, "-c", PROGRAM, name]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(models, root, store), timeout=200)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


DIFFERENCES: dict[str, dict[str, Any]] = {
    "": {},
    "affinity": {},
    "files of the system": {"description": None, "caches": {}, "resident": 0},
    "huge pages": {},
    "advice about memory": {},
    "images": {"delivered": 0},
    "threads": {"others": False},
    "forks": {},
    "modes of open": {},
    "a cache folder": {},
    "macos": {
        "name": "darwin", "description": "{machine} Apple M9 (model) asimd", "vectors": 32, "delivered": 0,
        "caches": {"1": 128 << 10, "2": 4 << 20}, "resident": 12345 * 4096,
    },
    "windows": {
        "name": "windows", "description": None, "delivered": 0, "resident": 12345 * 4096,
        "caches": {"1": 48 << 10, "2": 1 << 20, "3": 9 << 20},
    },
}  # fmt: skip
"""What is not as on a whole Linux."""


QUICK = ("macos", "windows")
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in DIFFERENCES if name not in QUICK]


@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_a_program_runs(name: str, models: Path, root: Path) -> None:
    found, expected = run(name, models, root), DIFFERENCES[name]
    assert found["sums"] == pytest.approx([6673401.07, 652151.147], rel=1e-6) and found["big"] == 1
    assert found["kernels"] and found["inside"] and found["mine"]
    for key, value in expected.items():
        if isinstance(value, str):
            value = value.format(machine=os.uname().machine)
        assert found[key] == value, key
    if "delivered" not in expected:
        assert found["delivered"] > 5
    if name in QUICK:
        assert found["calls"] > 0
    if name != "threads" and os.cpu_count() != 1:
        assert found["threads"] == 2 and found["others"]


@pytest.mark.parametrize("name", ["windows", pytest.param("modes of open", marks=pytest.mark.slow)])
def test_the_store_is_used(name: str, models: Path, root: Path, tmp_path: Path) -> None:
    """On the model of Windows only a folder of the user's profile is trusted."""
    home = tmp_path / "home"
    (home / "store").mkdir(parents=True)
    command = [sys.executable, "-c", PROGRAM, name]

    def compiled(store: Path) -> int:
        given = {**environment(models, root, str(store)), "HOME": str(home)}
        done = subprocess.run(command, capture_output=True, text=True, env=given, timeout=200)
        assert done.returncode == 0, done.stderr
        found: int = json.loads(done.stdout)["compiled"]
        return found

    assert compiled(home / "store") > 0 and compiled(home / "store") == 0
    if name == "windows":
        assert compiled(tmp_path / "elsewhere") > 0 and not list((tmp_path / "elsewhere").glob("*.o"))


PORTABLE = (
    "tests/numba_backend/runtime/test_thread_pool.py", "tests/numba_backend/runtime/test_program_table.py",
    "tests/numba_backend/native_loops/test_native_loops.py", "tests/tracer/test_jit.py", "tests/nn/test_nn.py",
)  # fmt: skip
"""Of the smoke tests, those that need no files of Linux and are soon done."""

INTERRUPTS = "tests/tracer/test_interrupts.py"
INTERRUPTED_ELSEWISE = (*QUICK, "threads", "forks")
"""Where a loop is interrupted in another way than on Linux."""


@pytest.mark.parametrize("name", QUICK)
def test_a_loop_is_interrupted(name: str, models: Path, root: Path) -> None:
    """On the model of Windows without alarms, and by the only signal that it sends."""
    code = START + """
f = forever(jnp.cos)
f(jnp.ones(3), 1)
for number in (signal.SIGINT, ANOTHER):
    signal.signal(number, signal.default_int_handler)
    try:
        after(0.2, lambda: interrupt(number))
        f(jnp.ones(3), -1)
    except KeyboardInterrupt:
        print(f(jnp.zeros(3), 1)[0])
print(hasattr(signal, "alarm"), ANOTHER.name)
"""
    given = {**environment(models, root, "off"), "HLOOM_TESTS_LACK": name}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=given, timeout=200)
    expected = ["False", "SIGTERM"] if name == "windows" else ["True", "SIGUSR1"]
    assert done.stdout.split() == ["1.0", "1.0", *expected], done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in DIFFERENCES if name])
def test_smoke_tests_pass(name: str, models: Path, root: Path, tmp_path: Path) -> None:
    given = {**environment(models, root, str(tmp_path)), "HLOOM_TESTS_LACK": name, "HOME": str(tmp_path)}
    del given["HLOOM_NUM_THREADS"]
    files = [*PORTABLE, *([INTERRUPTS] if name in INTERRUPTED_ELSEWISE else [])]
    command = [sys.executable, "-m", "pytest", "-p", "support.lacking", "-q", "-x", *files]
    done = subprocess.run(command, capture_output=True, text=True, env=given, cwd=root, timeout=900)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr


def test_a_console_of_windows_is_told_to_show_colours(models: Path, root: Path) -> None:
    code = """
import ctypes, os, sys
from support import lacking
lacking.install("windows")
from hloom.hlo.support.terminal import shows_colours
sys.stdout.isatty = lambda: True
os.environ.pop("NO_COLOR", None)
os.environ.pop("TERM", None)
(model,) = lacking.MODELS
mode, old = (ctypes.c_uint32.in_dll(model, name) for name in ("console_mode", "console_is_old"))
found = [shows_colours(), mode.value]
mode.value, old.value = 3, 1
print(*found, shows_colours(), mode.value)
"""
    given = environment(models, root, "off")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=given, timeout=100)
    assert done.stdout.split() == ["True", "7", "False", "3"], done.stderr


def test_code_for_the_loader_of_windows_is_elf(models: Path, root: Path) -> None:
    """LLVM's loader ends the process that gives it COFF there; linkers want COFF."""
    code = """
from support import lacking
lacking.install("windows")
from hloom.numba_backend.ahead.targets import TargetMachine
from hloom.numba_backend.runtime import llvm_backend
print(llvm_backend.module_header()[0].endswith("-elf"), llvm_backend.target_machine().triple.endswith("-elf"),
      TargetMachine("native").resolved().triple.endswith("-elf"))
"""
    given = environment(models, root, "off")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=given, timeout=100)
    assert done.stdout.split() == ["True", "True", "False"], done.stderr


def test_every_case_is_tried(root: Path) -> None:
    assert DIFFERENCES.keys() - {""} == lacking.LACKING.keys()
    assert {*PORTABLE, INTERRUPTS} < set((root / "tests" / "smoke.txt").read_text().split())


def test_the_blas_of_windows_is_beside_scipy(tmp_path: Path) -> None:
    """As in SciPy's wheels for Windows, where an extension does not show the functions that it links."""
    extension = tmp_path / "scipy" / "linalg" / "cython_blas.pyd"
    found = windows.Windows().library_of
    assert found(str(extension)) == str(extension)
    (tmp_path / "scipy.libs").mkdir()
    for name in (".load-order-scipy-1.18", "libscipy_openblas-0a1b.dll", "msvcp140-0a1b.dll"):
        (tmp_path / "scipy.libs" / name).touch()
    assert found(str(extension)) == str(tmp_path / "scipy.libs" / "libscipy_openblas-0a1b.dll")
    assert system.library_of(str(extension)) == str(extension)
