"""The programs that JAX lowers its public functions to run here and give JAX's results.

The modules, inputs and results were recorded by `tests/interop/record.py`; nothing here needs JAX.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hloom.hlo import parse, verify

import hloom
from interop.archive import Recorded, read
from interop.comparing import OVERRIDES, difference
from support.parts import assert_each, parts

RECORDED = read()


def first_of_each_function() -> set[str]:
    """The ids of one case a function."""
    return set({one.function: one.id for one in reversed(RECORDED.values())}.values())


FIRST = first_of_each_function()
SLOW = {"scipy.special.hyp2f1"}  # 5,200 instructions after inlining: many seconds to compile


def sample(names: Iterable[str]) -> list[Recorded]:
    """The cases of these names, for the default run."""
    return [RECORDED[name] for name in names if name not in SLOW]


def check(one: Recorded, **how: Any) -> None:
    assert difference(one.id, one.outputs, hloom.run_hlo(one.text, *one.inputs, **how)) is None


COMPILED = {"backend": "numba"}
FOR_TPU = COMPILED | {"target": "tpu"}


@pytest.mark.parametrize("one", sample(sorted(FIRST)[::8]), ids=str)
def test_compiled_gives_jax_results(one: Recorded) -> None:
    check(one, **COMPILED)


@pytest.mark.slow
@pytest.mark.parametrize("some", parts([*RECORDED.values()], 10, str))
def test_all_compiled_give_jax_results(some: list[Recorded]) -> None:
    assert_each(some, functools.partial(check, **COMPILED), str)


@pytest.mark.parametrize("one", sample(sorted(FIRST)[::16]), ids=str)
def test_compiled_in_the_layouts_of_a_tpu_gives_jax_results(one: Recorded) -> None:
    check(one, **FOR_TPU)


@pytest.mark.slow
@pytest.mark.parametrize("some", parts(sample(sorted(FIRST)[::3]), 5, str))
def test_many_functions_in_the_layouts_of_a_tpu_give_jax_results(some: list[Recorded]) -> None:
    """One case of every third function: LLVM takes half a second for each, and `test_tpu_ops.py` has all operations."""
    assert_each(some, functools.partial(check, **FOR_TPU), str)


@pytest.mark.parametrize("one", sample(RECORDED), ids=str)
def test_evaluated_gives_jax_results(one: Recorded) -> None:
    check(one, backend="evaluator")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SLOW))
def test_long_programs_evaluated_give_jax_results(name: str) -> None:
    check(RECORDED[name], backend="evaluator")


OPTIMIZED = {one.id: one for one in RECORDED.values() if one.optimized is not None}
"""Recorded after XLA's passes too: with fusions, layouts and what else XLA's CPU backend puts in."""


def check_optimized(one: Recorded) -> None:
    assert one.optimized is not None
    module = parse(one.optimized)
    verify(module)
    text = module.to_text()
    assert parse(text).to_text() == text
    assert difference(one.id, one.outputs, hloom.run_hlo(module, *one.inputs)) is None


@pytest.mark.parametrize("one", sample(sorted(OPTIMIZED)[::6]), ids=str)
def test_optimised_modules_read_print_and_run(one: Recorded) -> None:
    check_optimized(one)


@pytest.mark.slow
@pytest.mark.parametrize("some", parts([*OPTIMIZED.values()], 10, str))
def test_all_optimised_modules_read_print_and_run(some: list[Recorded]) -> None:
    assert_each(some, check_optimized, str)


def check_text(one: Recorded) -> None:
    text = parse(one.text).to_text()
    assert parse(text).to_text() == text


@pytest.mark.parametrize("some", parts([*RECORDED.values()][::2], 50, str))
def test_text_round_trip(some: list[Recorded]) -> None:
    assert_each(some, check_text, str)


@pytest.mark.slow
@pytest.mark.parametrize("some", parts([*RECORDED.values()][1::2], 50, str))
def test_text_round_trip_of_the_others(some: list[Recorded]) -> None:
    assert_each(some, check_text, str)


def test_number_of_functions() -> None:
    functions = {one.function for one in RECORDED.values()}
    modules = {name.rpartition(".")[0] for name in functions}
    assert len(functions) >= 300
    assert modules >= {"numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "random", "scipy.special"}


def test_functions_are_jax_functions() -> None:
    """Every recorded name is a public name of JAX."""
    pytest.importorskip("jax")
    from interop.record import resolve

    assert [one.function for one in RECORDED.values() if resolve(one.function) is None] == []


# A comparison that cannot fail is none


def test_every_result_is_compared() -> None:
    """A changed element is noticed in every result of every case: at the end, where the array has one."""
    unnoticed = []
    for one in RECORDED.values():
        for number, wanted in enumerate(one.outputs):
            if wanted.size == 0:
                continue
            changed = wanted.copy()
            flat = changed.reshape(-1)
            flat[-1] = different_from(flat)
            results = [*one.outputs[:number], changed, *one.outputs[number + 1 :]]
            if difference(one.id, one.outputs, results) is None:
                unnoticed.append(f"{one.id}, result {number}")
    assert unnoticed == []


def different_from(flat: np.ndarray) -> object:
    """Not the last element, by a hundredth of the largest for floats."""
    last = flat[-1]
    if flat.dtype == bool:
        return not last
    if flat.dtype.kind in "iu":
        return last ^ flat.dtype.type(1)
    finite = np.abs(flat[np.isfinite(flat)].astype(np.complex128))
    step = max(float(finite.max(initial=0.0)) / 16, 1e-3)
    return flat.dtype.type(np.complex128(last).real + step) if np.isfinite(last) else flat.dtype.type(0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.astype(np.float64), "float64"),
        (lambda x: x[:-1], r"\[2\]"),
        (lambda x: x + np.float32(1e-3), "wrong by"),
        (lambda x: np.where(x > 0, np.float32(np.nan), x), "special"),
        (lambda x: np.where(x > 0, np.float32(np.inf), x), "special"),
    ],
    ids=["dtype", "shape", "number", "nan", "inf"],
)
def test_wrong_results_are_noticed(change: Callable[[Any], Any], message: str) -> None:
    wanted = np.array([1.0, -2.0, 3.0], np.float32)
    assert difference("a case", [wanted], [wanted.copy()]) is None
    problem = difference("a case", [wanted], [change(wanted)])
    assert problem is not None
    assert re.search(message, problem)


def test_missing_results_are_noticed() -> None:
    wanted = np.zeros(3, np.float32)
    assert difference("a case", [wanted, wanted], [wanted]) == "1 results, not 2"


def test_a_wrong_program_is_noticed() -> None:
    """The same comparison as for all cases, of a module in which one operation is another."""
    one = RECORDED["numpy.add"]
    wrong = replace(one, text=one.text.replace(" add(", " subtract("))
    assert wrong.text != one.text
    assert difference(one.id, one.outputs, hloom.run_hlo(wrong.text, *wrong.inputs)) is not None


def test_wider_tolerances_are_for_cases_that_exist_and_say_why() -> None:
    assert [name for name, (_, reason) in OVERRIDES.items() if name not in RECORDED or len(reason) < 20] == []
