"""The derivatives of every op in the table of op cases, against finite differences, to second order."""

from __future__ import annotations

from typing import Any

import hloom.autodiff.api  # noqa: F401 - fills the tables of rules
import numpy as np
import pytest
from hloom.autodiff.rules.tables import JVP, TRANSPOSE
from hloom.hlo import ElementType, Opcode, Shape
from hloom.tracer.core import Value, bind, eval_computation
from hloom.tracer.ops import full_like, mul

from hloom.backend_check.op_table import CASES, Array, OpCase, build_module, make_inputs
from support.case_forms import every_second, one_of_each_form
from support.grad_check import check_derivatives, concrete, in_double_precision

NDArray = np.ndarray[Any, Any]
O = Opcode  # noqa: E741

_ELSEWHERE = (O.WHILE, O.CONDITIONAL, O.REDUCE_PRECISION)
"""Tested in test_control_flow_derivatives; not what differences say: test_conventions."""
_LARGEST = 1500
"""Elements of an operand."""
_ORDERED = (O.SORT, O.TOPK, O.REDUCE_WINDOW, O.SELECT_AND_SCATTER)
"""They compare elements: no two may be so near that a difference exchanges them."""
_BATCH_NORM = (O.BATCH_NORM_TRAINING, O.BATCH_NORM_INFERENCE, O.BATCH_NORM_GRAD)
_FACTORISATIONS = (O.CHOLESKY, O.TRIANGULAR_SOLVE)
_SINGLE = {ElementType.F32, ElementType.C64}
_INTERVALS: dict[Opcode, tuple[float, float]] = {
    O.ACOS: (-0.8, 0.8),
    O.ACOSH: (1.3, 3.0),
    O.ASIN: (-0.8, 0.8),
    O.ATANH: (-0.8, 0.8),
    O.CBRT: (0.5, 2.0),
    O.LOG: (0.5, 2.0),
    O.LOG1P: (-0.5, 2.0),
    O.POWER: (0.5, 2.0),
    O.RSQRT: (0.5, 2.0),
    O.SQRT: (0.5, 2.0),
    **dict.fromkeys(_BATCH_NORM, (0.5, 2.0)),
}
"""Where functions that are not defined or not smooth everywhere are; others get +-[0.5, 1.5]."""


def _is_differentiable(case: OpCase) -> bool:
    types = {array.element_type for array in case.arrays}
    results = {leaf.element for leaf in case.result.leaves()}
    floats = {t for t in types | results if t.is_inexact}
    empty = any(0 in array.dimensions for array in case.arrays)
    return (
        case.opcode in JVP
        and case.opcode not in _ELSEWHERE
        and all(isinstance(operand, Array) for operand in case.operands)
        and not (empty and case.opcode in (O.REDUCE, *_BATCH_NORM))  # results: infinite, or NaN
        and not (_is_empty(case.result) or all(_is_empty(array.shape) for array in case.arrays))
        and all(array.shape.num_elements <= _LARGEST for array in case.arrays)
        and not (case.opcode is O.CHOLESKY and "indefinite" in case.id)
        and bool(types & _SINGLE)
        and bool(results & _SINGLE)
        and floats <= _SINGLE
    )


def _is_empty(shape: Shape) -> bool:
    return all(leaf.num_elements == 0 for leaf in shape.leaves())


def _inputs(case: OpCase) -> list[NDArray]:
    """Values in double precision at which the op is smooth; what is no float, and init values, as the case says."""
    rng = np.random.default_rng(len(case.id))
    given = make_inputs(case)
    found = []
    for position, (array, value) in enumerate(zip(case.arrays, given, strict=True)):
        if not array.element_type.is_inexact:
            found.append(value)
        elif case.opcode in _FACTORISATIONS:  # positive definite, or well conditioned; NaN where it is not read
            kind = np.complex128 if array.element_type.is_complex else np.float64
            found.append(np.where(np.isnan(value), 0.5, value).astype(kind))
        elif case.opcode is O.REDUCE_WINDOW and position >= len(case.arrays) // 2:
            found.append(np.clip(value.real, -90, 90).astype(_WIDE[array.element_type.is_complex]))
        elif case.opcode is O.REDUCE and position >= len(case.arrays) // 2:
            found.append(value.astype(_WIDE[array.element_type.is_complex]))
        else:
            found.append(_smooth(case.opcode, array.element_type, array.dimensions, rng))
    return found


_WIDE = (np.float64, np.complex128)


def _smooth(opcode: Opcode, element_type: ElementType, dims: tuple[int, ...], rng: np.random.Generator) -> NDArray:
    if opcode in _ORDERED:
        count = int(np.prod(dims))
        real = (rng.permutation(count).reshape(dims) - count / 2) / max(count, 1)
    elif opcode in _INTERVALS:
        real = rng.uniform(*_INTERVALS[opcode], dims)
    else:
        real = rng.uniform(0.5, 1.5, dims) * rng.choice([-1, 1], dims)
    if element_type.is_complex:
        return np.asarray(real + 1j * rng.uniform(0.2, 0.6, dims) * rng.choice([-1, 1], dims), np.complex128)
    return np.asarray(real, np.float64)


_CHECKED = [case for case in CASES if _is_differentiable(case)]


def _first_of_each_form() -> set[str]:
    """Of the cases that differ in nothing but element types one that is real and one that is complex: all are computed
    in double precision. Of these, every second one of each operation."""
    complex_ = [case for case in _CHECKED if any(leaf.element.is_complex for leaf in case.result.leaves())]
    real = [case for case in _CHECKED if case not in complex_]
    return {case.id for some in (real, complex_) for case in every_second(one_of_each_form(some))}


_FIRST = _first_of_each_form()


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c.id, marks=() if c.id in _FIRST else pytest.mark.slow) for c in _CHECKED]
)
def test_derivatives_of_op(case: OpCase) -> None:
    program = in_double_precision(build_module(case).entry)

    def function(values: list[Value]) -> list[Value]:
        return eval_computation(program, values)

    inputs = _inputs(case)
    # Init values of min, max and the like are infinite: they do not move.
    fixed = {k for k, x in enumerate(inputs) if x.dtype.kind in "fc" and not np.all(np.isfinite(x))}
    free = [k for k in range(len(inputs)) if k not in fixed]

    def of_free(values: list[Value]) -> list[Value]:
        by_place: dict[int, Any] = dict(zip(free, values, strict=True))
        return function([by_place[k] if k in by_place else concrete(inputs[k]) for k in range(len(inputs))])

    # The computation of a map that has a loop makes the map one: forward mode only.
    modes = "forward" if case.opcode is O.MAP and case.id.endswith("looping") else "forward reverse"
    check_derivatives(of_free, [inputs[k] for k in free], modes=modes)


def test_every_opcode_has_rules_or_says_why_not() -> None:
    assert JVP.missing() == []
    assert TRANSPOSE.missing() == []


def test_table_reaches_every_rule() -> None:
    reached = {case.opcode for case in _CHECKED} | set(_ELSEWHERE)
    assert {o for o in Opcode if o in JVP} == reached


@pytest.mark.parametrize("factor", [1.01, -1.0, 0.0])
def test_checker_finds_a_wrong_jvp_rule(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    right = JVP[O.SIN]

    def wrong(primals: Any, tangents: Any, attributes: Any, shape: Any) -> Any:
        result, tangent = right(primals, tangents, attributes, shape)
        return result, mul(tangent, full_like(tangent, factor))

    monkeypatch.setitem(JVP._rules, O.SIN, wrong)
    with pytest.raises(AssertionError, match="forward mode and differences are"):
        check_derivatives(lambda xs: [bind(O.SIN, xs)], [np.array([0.3, 1.1])], order=1)


def test_checker_finds_a_wrong_transpose_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRANSPOSE._rules, O.NEGATE, lambda ct, operands, attributes, shape: [ct])
    with pytest.raises(AssertionError, match="but <J\\^T ct, v> is"):
        check_derivatives(lambda xs: [bind(O.NEGATE, xs)], [np.array([0.3, 1.1])], order=1)


def test_checker_finds_a_rule_that_is_wrong_in_second_order_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """d sin = cos, but the derivative of that cos is wrong."""
    monkeypatch.setitem(JVP._rules, O.COS, JVP[O.SIN])
    function, inputs = (lambda xs: [bind(O.SIN, xs)]), [np.array([0.3, 1.1])]
    check_derivatives(function, inputs, order=1)
    with pytest.raises(AssertionError, match="apart"):
        check_derivatives(function, inputs, order=2)
