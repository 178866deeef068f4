"""Printed kernels under plain `numba.njit`, with `hloom.kernel_globals()`, give what the library gives."""

from __future__ import annotations

import os

import pytest
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.runtime.program import ProgramBuilder

import hloom
from hloom import hlo
from hloom.backend_check.op_table import CASES, OpCase, build_module, check_results, make_inputs
from tests.support import plain_numba
from tests.support.case_forms import new_kinds
from tests.support.plain_numba import NoKernel, PlainProgram

SAMPLE = (
    "add-f32", "tanh-c64", "convert-bf16", "reduce-f32", "reduce-window", "scatter", "sort", "gather", "rng-bit",
    "concatenate", "dynamic-update-slice", "while", "power-s32", "select-and-scatter",
)  # fmt: skip
"""How the names of some cases begin: one for each kind of kernel."""


def run(case: OpCase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProgramBuilder, "build", lambda self, store=None: PlainProgram(self))
    module, inputs = build_module(case), make_inputs(case)
    try:
        executable = NumbaCompiler().compile(module)
    except NoKernel as reason:
        pytest.skip(f"a row is a {reason}")
    check_results(case, executable.execute(inputs), hlo.evaluate(module, *inputs))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("start", SAMPLE)
def test_kernels_run_under_plain_numba(start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run(next(case for case in CASES if case.id.startswith(start)), monkeypatch)


SHARE = os.environ.get("HLOOM_TEST_KERNELS")
"""HLOOM_TEST_KERNELS=n runs one in n cases. Plain Numba takes half a second for a kernel, so by default one in 32 runs,
if its operation or an element type is new."""


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES[:: int(SHARE)] if SHARE else new_kinds(CASES[::32]), ids=lambda case: case.id)
def test_all_op_cases_run_under_plain_numba(case: OpCase, monkeypatch: pytest.MonkeyPatch) -> None:
    run(case, monkeypatch)


def test_the_globals_are_a_copy() -> None:
    hloom.kernel_globals().clear()
    names = hloom.kernel_globals()
    assert {"float32", "tanh", "reduce_add", "local_array", "interrupted", "select"} <= names.keys()
    assert not any(name.startswith("_") for name in names)


def test_a_wrong_kernel_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = plain_numba.compiled
    monkeypatch.setattr(plain_numba, "compiled", lambda name, source: right(name, source.replace(" + ", " - ")))
    with pytest.raises(AssertionError, match="ulps, 0 allowed"):
        run(next(case for case in CASES if case.id.startswith("add-f32")), monkeypatch)
