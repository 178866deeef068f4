"""The backends of `examples/backends`, found as in an installed package: op table, programs, and their own sides.

The whole table: HLOOM_WHOLE_OP_TABLE=1, which takes some minutes for each; else a sample of it is among the slow tests.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo.backend import Compiler, get_compiler, register_backend, unregister_backend
from hloom.hlo.host_buffers import HostBuffer
from hloom.hlo.stream_executor import DeviceError, DeviceMemoryError

import hloom
import hloom.numpy as jnp
from hloom import hlo
from hloom.backend_check.checking import check_backend
from hloom.backend_check.report import Outcome, Report
from tests.support.example_backends import FOLDER, installed, selected, write_distribution

needs_cc = pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler")
BACKENDS = [pytest.param("c", marks=needs_cc), "toy"]
REFUSED = {
    "c": {
        "ragged-all-to-all": "it calls Python, or a library of this process",
        "custom-call": "it calls Python, or a library of this process",
        "fft": "it calls Python, or a library of this process",
        "cholesky": "it calls Python, or a library of this process",
        "triangular-solve": "it calls Python, or a library of this process",
        "rng-get-and-update-state": "it calls Python, or a library of this process",
    },
    "toy": {
        "ragged-all-to-all": "the device cannot call functions of the host",
        "custom-call": "the device cannot call functions of the host",
        "rng-get-and-update-state": "the device cannot call functions of the host",
    },
}
"""Ops that a backend refuses (`c`: large matrices, and sizes that it has no kernel for), with its message."""


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path):
        yield


def assert_good(report: Report, backend: str) -> None:
    assert report.is_good, str(report)
    for outcome in report.of("refused"):
        op = next((op for op, why in REFUSED[backend].items() if op in outcome.text and why in outcome.text), None)
        assert op is not None, f"{backend} refuses {outcome.name}: {outcome.text}"
    assert len(report.of("passed")) > 0.9 * len(report.outcomes), str(report)


def test_a_refusal_without_a_reason_is_noticed() -> None:
    with pytest.raises(AssertionError, match="toy refuses add: no adder"):
        assert_good(Report("toy", (Outcome("ops", "add", "refused", "no adder"),)), "toy")
    with pytest.raises(AssertionError, match="1x add: wrong"):
        assert_good(Report("toy", (Outcome("ops", "add", "failed", "wrong"),)), "toy")


@pytest.mark.parametrize("backend", BACKENDS)
def test_interface(backend: str) -> None:
    assert_good(check_backend(backend, parts=["protocol"]), backend)


PROGRAMS = {"c": ("scalars", "network-and-gradient", "loops-in-loops"), "toy": ("",)}


@pytest.mark.parametrize("backend", BACKENDS)
def test_programs(backend: str) -> None:
    chosen = PROGRAMS[backend]
    assert_good(check_backend(backend, parts=["programs"], only=lambda name: name.startswith(chosen)), backend)


@pytest.mark.slow
@needs_cc
def test_all_programs_in_c() -> None:
    assert_good(check_backend("c", parts=["programs"]), "c")


@pytest.mark.parametrize(("backend", "every"), [pytest.param("c", 307, marks=needs_cc), ("toy", 61)])
def test_a_few_ops(backend: str, every: int) -> None:
    assert_good(check_backend(backend, parts=["ops"], every=every), backend)


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "every"), [pytest.param("c", 23, marks=needs_cc), ("toy", 11)])
def test_many_ops(backend: str, every: int) -> None:
    whole = bool(os.environ.get("HLOOM_WHOLE_OP_TABLE"))
    assert_good(check_backend(backend, parts=["ops"], every=1 if whole else every), backend)


# ---- packages that bring backends


def test_a_process_finds_what_is_installed(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    write_distribution(folder)
    code = "import hloom, hloom.numpy as jnp; print(hloom.jit(lambda x: x * 2)(jnp.arange(3)))"
    path = os.pathsep.join([str(folder), str(FOLDER), str(FOLDER.parents[1])])
    environment = {**os.environ, "PYTHONPATH": path, "HLOOM_BACKEND": "toy"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[0 2 4]\n"), done.stderr
    with pytest.raises(hlo.UnsupportedError, match=r"no backend named 'tyo'; known: .*numba, evaluator.*, c, toy"):
        get_compiler("tyo")


# ---- C source


@needs_cc
def test_the_kernel_is_the_c_file() -> None:
    with selected("c"):
        compiled = hloom.jit(lambda x: jnp.sin(x) + 1).lower(np.ones(3, np.float32)).compile()
    (text,) = compiled.kernels().values()
    assert "int32_t hloom_run(" in text and "sin_f32" in text
    assert [record.name for record in compiled.passes()][-2:] == ["c-source", "c-compiler"]


def test_c_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    module = hlo.parse("HloModule m\nENTRY e {\n  x = f32[777] parameter(0)\n  ROOT y = f32[777] negate(x)\n}\n")
    with pytest.raises(hlo.UnsupportedError, match="install gcc or clang, or name one in CC"):
        get_compiler("c").compile(module)


@needs_cc
def test_what_the_c_compiler_says_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", f"{shutil.which('cc') or shutil.which('gcc')} -Dfloat=flaot")
    module = hlo.parse("HloModule m\nENTRY e {\n  x = f32[778] parameter(0)\n  ROOT y = f32[778] negate(x)\n}\n")
    with pytest.raises(hlo.HloError, match="flaot"):
        get_compiler("c").compile(module)


# ---- the accelerator


def new_device(nbytes: int = 1 << 20) -> tuple[Any, Any]:
    """A device of its own, and a compiler for it."""
    compiler = import_module("toy_accelerator.compiler")
    device = import_module("toy_accelerator.device").ToyDevice(nbytes)
    return device, compiler.ToyCompiler(device)


@contextmanager
def selected_compiler(name: str, compiler: Compiler) -> Iterator[None]:
    """A backend of this object, registered and chosen."""
    register_backend(name, lambda: compiler)
    try:
        with selected(name):
            yield
    finally:
        unregister_backend(name)


DOUBLE = "HloModule m\nENTRY e {\n  x = f32[1000] parameter(0)\n  ROOT y = f32[1000] add(x, x)\n}\n"
X = np.arange(1000, dtype=np.float32)


def test_a_device_has_its_own_addresses_and_a_trace() -> None:
    device, compiler = new_device()
    executable = compiler.compile(hlo.parse(DOUBLE))
    (result,) = executable.call([HostBuffer(X, executable.parameter_shapes[0])])
    assert result.memory.address >= 0x7000_0000_0000
    np.testing.assert_array_equal(np.asarray(result), 2 * X)
    texts = [executed.text.split()[0] for executed in device.trace]
    assert texts == ["host", "dma", "dma", "vector", "dma", "launch", "device"]
    assert device.cycles == device.trace[-1].end > 0
    copied = (ctypes.c_float * len(X)).from_address(result.address)  # in this process
    assert result.address != result.memory.address and list(copied) == list(2 * X)


def test_calls_return_before_the_device_is_done() -> None:
    device, compiler = new_device()
    with selected_compiler("slow-toy", compiler):
        double = hloom.jit(lambda x: x + x)
        double(X).block_until_ready()
        gate = threading.Event()
        device._enqueue("wait", lambda: gate.wait() and 0, None)
        later = double(double(X))
        assert not later.is_ready()
        gate.set()
        assert later.block_until_ready() is later and later.is_ready()
        np.testing.assert_array_equal(later, 4 * X)
        gate.clear()
        device._enqueue("wait", lambda: gate.wait() and 0, None)
        waiting = threading.Thread(target=hloom.block_until_ready, args=({"a": [double(X)]},))
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive(), "block_until_ready waits for arrays in a tree"
        gate.set()
        waiting.join()


def test_memory_is_given_back_and_runs_out() -> None:
    device, compiler = new_device(1 << 16)
    executable = compiler.compile(hlo.parse(DOUBLE))
    argument = HostBuffer(X, executable.parameter_shapes[0])
    for _ in range(50):  # 400 kB in all
        executable.call([argument])
    device.synchronize()
    assert device.memory_usage().used == 0 < device.memory_usage().peak <= device.memory_usage().size
    kept = []
    with pytest.raises(DeviceMemoryError, match=r"no 4,000 bytes left in one piece: [\d,]+ of 65,536 are in use"):
        while True:
            kept += executable.call([argument])
    np.testing.assert_array_equal(np.asarray(kept[0]), 2 * X)
    kept.clear()
    np.testing.assert_array_equal(executable.execute([X])[0], 2 * X)
    with pytest.raises(DeviceMemoryError, match="has no 36,000,000 bytes left in one piece"):
        compiler.compile(hlo.parse(DOUBLE.replace("1000", "9000000"))).execute([np.zeros(9000000, np.float32)])


def test_an_error_comes_where_somebody_waits() -> None:
    _, compiler = new_device()
    executable = compiler.compile(hlo.parse(DOUBLE))
    argument = HostBuffer(X, executable.parameter_shapes[0])
    program = executable.program
    dma = program.commands[0]
    wrong = replace(dma, source=replace(dma.source, offset=64))
    executable.program = replace(program, commands=(wrong, *program.commands[1:]))
    (failed,) = executable.call([argument])
    executable.program = program
    (later,) = executable.call([failed])
    for buffer in (failed, later):
        with pytest.raises(DeviceError, match=r"launch m: illegal address: b0\+64\[1000\]x4 in a block of 4032 bytes"):
            np.asarray(buffer)
    np.testing.assert_array_equal(executable.execute([X])[0], 2 * X)


def test_arrays_go_from_one_backend_to_another() -> None:
    step = hloom.jit(lambda x: x + 1)
    giving = hloom.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.zeros(5)
    for name in ("toy", "numba", "toy", "evaluator", "toy"):
        with selected(name):
            x = giving(step(x))
    np.testing.assert_array_equal(x, np.full(5, 10))


def test_a_donated_array_stays_where_it_is() -> None:
    with selected("toy"):
        step = hloom.jit(lambda x: x * 2, donate_argnums=0)
        first = step(jnp.ones(300))
        before = first._buffer.memory.address
        second = step(first)
        assert second._buffer.memory.address == before and first.is_deleted()
        np.testing.assert_array_equal(second, np.full(300, 4))


def test_a_fork_has_no_queue() -> None:
    _, compiler = new_device()
    executable = compiler.compile(hlo.parse(DOUBLE))
    child = os.fork()
    if not child:
        try:
            executable.execute([X])
        except DeviceError as error:
            os._exit(7 if "a fork has no queue" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    np.testing.assert_array_equal(executable.execute([X])[0], 2 * X)


SIZES = {
    "larger-than-the-scratchpad": (lambda x: jnp.sin(x) * x + 1, (np.linspace(0, 9, 200_000, dtype=np.float32),)),
    "long-sums": (lambda x: (x.sum(0), x.max(1)), (np.arange(60_000, dtype=np.int32).reshape(300, 200),)),
    "products-of-many-tiles": (lambda x: x @ x.T, (np.arange(300 * 260, dtype=np.float32).reshape(300, 260) % 7,)),
    "sort": (lambda x: jnp.sort(x), (np.arange(5000, dtype=np.int32) * 7919 % 5003,)),
    "gather": (lambda x: x[::-1][jnp.arange(30_000) % 1000], (np.arange(2000, dtype=np.float32),)),
    "scatter": (lambda x: x.at[jnp.arange(0, 90, 3)].add(x[:30]), (np.ones((100, 400), np.float32),)),
}


@pytest.mark.parametrize("name", SIZES)
def test_what_does_not_fit_is_done_in_pieces(name: str) -> None:
    function, arguments = SIZES[name]
    with selected("toy"):
        found = hloom.tree.leaves(hloom.jit(function)(*arguments))
    with selected("evaluator"):
        expected = hloom.tree.leaves(hloom.jit(function)(*arguments))
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
