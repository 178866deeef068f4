"""Checks derivatives: jvp against finite differences, vjp against jvp, to any order. All in double precision.

    check_derivatives(function, inputs, order=2)

`function` takes and returns flat lists of values. Inputs are NumPy arrays; integers among them do not move. The checker
knows no rules: it sees only what functions compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import hloom.tracer.settings.config
import numpy as np
from hloom.hlo import ElementType, HloComputation, HloInstruction, Literal, Shape
from hloom.hlo.ir import NO_ATTRIBUTES
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops.structure import ConstantAttributes
from hloom.tracer.arrays.array import Array, as_value
from hloom.tracer.aval import ShapedArray

import hloom

NDArray = np.ndarray[Any, Any]
Function = Callable[[list[Any]], Sequence[Any]]


def concrete(array: NDArray) -> Array:
    """A value of exactly this dtype, whether 64-bit types are on or not."""
    array = np.array(array)
    return Array(ShapedArray(array.shape, array.dtype), array)


def _moves(array: Any) -> bool:
    return np.dtype(array.dtype).kind in "fc"


def random_direction(like: NDArray, rng: np.random.Generator) -> NDArray:
    """A tangent or cotangent of the type of `like`."""
    direction = rng.uniform(-1, 1, like.shape)
    if like.dtype.kind == "c":
        direction = direction + 1j * rng.uniform(-1, 1, like.shape)
    return np.asarray(direction, like.dtype)


def check_derivatives(
    function: Function,
    inputs: Sequence[NDArray],
    *,
    order: int = 2,
    tolerance: float = 1e-6,
    step: float = 1e-6,
    modes: str = "forward reverse",
    seed: int = 0,
) -> None:
    """AssertionError unless the derivatives of `function` at `inputs`, up to `order`, are those that differences give.

    Forward mode is compared with central differences; reverse mode with forward mode by <ct, J v> = <J^T ct, v>, for
    complex numbers without conjugation and real parts only. The next order differentiates these two programs.
    """
    rng = np.random.default_rng(seed)
    inputs = [np.asarray(x) for x in inputs]
    moving = [k for k, x in enumerate(inputs) if _moves(x)]
    assert moving, "no input moves"
    outputs = [np.asarray(y) for y in function([concrete(x) for x in inputs])]
    kept = [k for k, y in enumerate(outputs) if _moves(y)]
    assert kept, "no output moves"

    def of_moving(xs: Sequence[Any]) -> list[Any]:
        """`function` from the moving inputs to the outputs that move."""
        filled: list[Any] = [concrete(x) for x in inputs]
        for k, x in zip(moving, xs, strict=True):
            filled[k] = x
        results = function(filled)
        return [as_value(results[k]) for k in kept]

    points = [inputs[k] for k in moving]
    directions = [random_direction(p, rng) for p in points]

    def push(*values: Any) -> list[Any]:
        xs, ts = values[: len(points)], values[len(points) :]
        return list(hloom.jvp(lambda *args: of_moving(args), xs, ts)[1])

    pushed = [np.asarray(t) for t in push(*map(concrete, [*points, *directions]))]
    _check_against_differences(of_moving, points, directions, pushed, step, tolerance)

    cotangents = [random_direction(outputs[k], rng) for k in kept]

    def pull(*values: Any) -> list[Any]:
        xs, cts = values[: len(points)], values[len(points) :]
        _, back = hloom.vjp(lambda *args: of_moving(args), *xs)
        return list(back(list(cts)))

    if "reverse" in modes:
        pulled = [np.asarray(t) for t in pull(*map(concrete, [*points, *cotangents]))]
        for point, ct in zip(points, pulled, strict=True):
            assert ct.shape == point.shape and ct.dtype == point.dtype, "a cotangent has not its input's type"
        left, right = _pairing(cotangents, pushed), _pairing(pulled, directions)
        scale = 1 + sum(float(np.abs(p).sum()) for p in (*pushed, *pulled))
        assert abs(left - right) <= 1e-9 * scale, f"<ct, J v> is {left}, but <J^T ct, v> is {right}"
    if order > 1:
        again: dict[str, Any] = {"order": order - 1, "step": step, "modes": modes, "seed": seed + 1}
        again["tolerance"] = tolerance * 10
        if "forward" in modes:
            check_derivatives(lambda xs: push(*xs), [*points, *directions], **again)
        if "reverse" in modes:
            check_derivatives(lambda xs: pull(*xs), [*points, *cotangents], **again)


def _pairing(cotangents: Sequence[NDArray], tangents: Sequence[NDArray]) -> float:
    return sum(float(np.real(np.sum(c * t))) for c, t in zip(cotangents, tangents, strict=True))


def _check_against_differences(
    function: Function,
    points: Sequence[NDArray],
    directions: Sequence[NDArray],
    pushed: Sequence[NDArray],
    step: float,
    tolerance: float,
) -> None:
    def at(distance: float) -> list[NDArray]:
        moved = [np.asarray(p + distance * d, p.dtype) for p, d in zip(points, directions, strict=True)]
        return [np.asarray(y) for y in function([concrete(m) for m in moved])]

    ahead, behind = at(step), at(-step)
    for k, (a, b, t) in enumerate(zip(ahead, behind, pushed, strict=True)):
        difference = (a - b) / (2 * step)
        assert t.shape == difference.shape and t.dtype == difference.dtype, f"tangent {k} has not its output's type"
        scale = 1 + np.abs(difference)
        error = np.abs(difference - t) / scale
        worst = float(error.max()) if error.size else 0.0
        assert worst <= tolerance, f"tangent {k}: forward mode and differences are {worst:.3g} apart (relative)"


# --- programs in double precision

_WIDER = {ElementType.F32: ElementType.F64, ElementType.C64: ElementType.C128}


def _wider_shape(shape: Shape) -> Shape:
    if shape.is_tuple:
        return Shape.tuple([_wider_shape(s) for s in shape.elements])
    return shape.with_element_type(_WIDER.get(shape.element, shape.element))


def in_double_precision(computation: HloComputation) -> HloComputation:
    """The same program with f64 for f32 and c128 for c64."""
    mapping: dict[HloInstruction, HloInstruction] = {}
    for i in computation.instructions:
        attributes = i.attributes
        if i.opcode is Opcode.CONSTANT:
            literal = attributes.literal
            attributes = ConstantAttributes(Literal(literal.array, _wider_shape(literal.shape).element.dtype))
        elif attributes is not NO_ATTRIBUTES:
            attributes = attributes.map_computations(in_double_precision)
        operands = tuple(mapping[o] for o in i.operands)
        mapping[i] = replace(i, shape=_wider_shape(i.shape), operands=operands, attributes=attributes)
    return HloComputation(computation.name, tuple(mapping.values()), mapping[computation.root])
