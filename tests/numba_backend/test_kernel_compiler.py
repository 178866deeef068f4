"""Kernels that Numba compiles (`HLOOM_COMPILER=numba`) give what the library's own compiler gives."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hloom.hlo.backend import KERNEL_COMPILER
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.store import default_store

import hloom
import hloom.numpy as jnp
from hloom import hlo, lax
from hloom.backend_check.op_table import CASES, OpCase, build_module, check_results, make_inputs
from tests.support.case_forms import new_kinds

SAMPLE = (
    "add-f32", "add-bf16", "multiply-c64", "tanh-f32", "exponential-f64", "convert-f16", "reduce-f32", "reduce-window",
    "scatter", "sort", "gather", "rng-bit", "concatenate", "dynamic-update-slice", "while", "power-s32", "divide-s32",
    "select-and-scatter", "cholesky", "fft", "dot-s8", "convolution", "transpose",
)  # fmt: skip
"""How the names of some cases begin: one for each kind of kernel."""

INEXACT = frozenset(
    (
        *("dot", "convolution", "reduce", "reduce-window", "scatter", "select-and-scatter", "fft", "cholesky"),
        *("triangular-solve", "batch-norm-training", "batch-norm-grad", "batch-norm-inference", "custom-call"),
    )
)
"""Opcodes with kernels that add numbers in an order that their text leaves open."""


def check(case: OpCase) -> None:
    module, inputs = build_module(case), make_inputs(case)
    chosen = replace(module, frontend_attributes=(*module.frontend_attributes, (KERNEL_COMPILER, "numba")))
    actual = NumbaCompiler().compile(chosen).execute(inputs)
    check_results(case, actual, hlo.evaluate(module, *inputs))
    if not {i.opcode.value for i in module.instructions()} & INEXACT:
        for one, other in zip(actual, NumbaCompiler().compile(module).execute(inputs), strict=True):
            one, other = np.atleast_1d(one), np.atleast_1d(other)
            width = one.dtype.itemsize
            bits = [np.ascontiguousarray(x).view(np.uint8).reshape(x.size, width) for x in (one, other)]
            both_nan = ((one != one) & (other != other)).reshape(-1)
            np.testing.assert_array_equal(bits[0][~both_nan], bits[1][~both_nan], case.id)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("start", SAMPLE)
def test_a_case_of_each_kind(start: str) -> None:
    check(next(case for case in CASES if case.id.startswith(start)))


SHARE = os.environ.get("HLOOM_TEST_KERNELS")
"""HLOOM_TEST_KERNELS=n runs one in n cases. Numba takes some tenths of a second for a kernel, so by default one in 64
runs, if its operation or an element type is new."""


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES[:: int(SHARE)] if SHARE else new_kinds(CASES[32::64]), ids=lambda case: case.id)
def test_all_op_cases(case: OpCase) -> None:
    check(case)


def test_kernels_of_the_two_compilers_are_stored_apart() -> None:
    own = KernelSource("k", "def k(lo, hi, x):\n    x[0] = 1\n", (("pointer", "f32"),))  # type: ignore[arg-type]
    by_numba = replace(own, compiler="numba")
    assert own.identity != by_numba.identity and own.symbol != by_numba.symbol and own != by_numba


def test_the_setting_is_a_part_of_what_programs_depend_on() -> None:
    f = hloom.jit(lambda x: lax.fori_loop(0, 10, lambda i, y: y * 1.5 - jnp.sin(y), x) + 1)
    x = jnp.linspace(0, 1, 37)
    expected = np.asarray(f(x))
    before = hloom.config.hloom_compiler
    hloom.config.update("hloom_compiler", "numba")
    try:
        assert hloom.config.hloom_compiler == "numba"
        lowered = f.lower(x)
        made = default_store().statistics
        found = np.asarray(f(x))
        compiled = lowered.compile()
        assert 'hloom_compiler="numba"' in compiled.as_text()
        assert default_store().statistics != made
    finally:
        hloom.config.update("hloom_compiler", before)
    np.testing.assert_array_equal(found, expected)
    assert before != "llvm" or 'hloom_compiler="numba"' not in f.lower(x).compile().as_text()


@pytest.mark.parametrize(("value", "error"), [("gcc", ValueError), (3, TypeError)])
def test_other_compilers_are_refused(value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="hloom_compiler"):
        hloom.config.update("hloom_compiler", value)
    module = build_module(CASES[0])
    with pytest.raises(hlo.UnsupportedError, match='"llvm" and "numba", not \'gcc\''):
        NumbaCompiler().compile(replace(module, frontend_attributes=((KERNEL_COMPILER, "gcc"),)))


PROGRAM = """
import numpy as np, hloom, hloom.numpy as jnp
x = jnp.asarray(np.linspace(-3, 3, 10_000, dtype=np.float32).reshape(100, 100))
y = hloom.jit(lambda x: jnp.tanh(x.T) * x + 1)(x)
print(hloom.config.hloom_compiler, np.asarray(y).tobytes().hex()[:64])
"""


@pytest.mark.parametrize("name", ["llvm", "numba", "gcc"])
def test_the_environment_chooses(name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "HLOOM_COMPILER": name, "HLOOM_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    ran = [subprocess.run(command, capture_output=True, text=True, env=environment) for _ in range(2)]
    if name == "gcc":
        assert "the compilers of kernels are" in ran[0].stderr and ran[0].returncode == 1
        return
    x = np.linspace(-3, 3, 10_000, dtype=np.float32).reshape(100, 100)
    here = np.asarray(hloom.jit(lambda x: jnp.tanh(x.T) * x + 1)(x)).tobytes().hex()[:64]
    assert [r.stdout.split() for r in ran] == [[name, here]] * 2, ran[0].stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["-m", "tools.fuzz", "--kind", "hlo", "--cases", "6", "--seed", "7000", "--no-jax"],
        ["-m", "tools.fuzz", "--kind", "loop", "--cases", "2", "--seed", "7000", "--no-jax"],
        ["examples/train_mnist.py", "--digits", "--epochs", "1"],
    ],
    ids=["random programs", "random loops", "MNIST"],
)
def test_programs(command: list[str], root: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "HLOOM_COMPILER": "numba", "HLOOM_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=root, env=environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
