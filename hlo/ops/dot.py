"""dot: the general product of two arrays over contracting dimensions, along batch dimensions.

Source: XLA's ShapeInference::InferDotOpShape; the section "DotGeneral" of the operation semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from ..instruction import Attributes
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from ..text.codecs import INTEGER_LIST, PRECISION, WORD
from .checks import INTEGERS, array_of, fail, require_arrays, require_distinct_dimensions
from .declare import Attr, Dims, Of
from .spec import OpSpec, Trait


@dataclass(frozen=True, slots=True)
class DotAttributes(Attributes):
    """dot_general: the result has the batch dimensions, then lhs's free ones, then rhs's free ones.

    The result's element type may be wider than the operands' (preferred_element_type).
    """

    lhs_batch_dims: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.OPERAND_0))] = ()
    rhs_batch_dims: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.OPERAND_1))] = ()
    lhs_contracting_dims: Annotated[
        tuple[int, ...],
        Attr(INTEGER_LIST, dims=Dims(names=Of.OPERAND_0), always=True, after="lhs_batch_dims"),
    ] = ()
    rhs_contracting_dims: Annotated[
        tuple[int, ...],
        Attr(INTEGER_LIST, dims=Dims(names=Of.OPERAND_1), always=True),
    ] = ()
    operand_precision: Annotated[tuple[str, str], Attr(PRECISION)] = ("default", "default")
    algorithm: Annotated[str, Attr(WORD)] = ""
    """One of `DOT_ALGORITHMS`, e.g. "dot_bf16_bf16_f32"; "" leaves the choice to the compiler."""


@dataclass(frozen=True, slots=True)
class RaggedDotAttributes(Attributes):
    """Operands: lhs, rhs, group sizes. A dot with one ragged lhs dimension: groups follow each other along it."""

    dot: Annotated[DotAttributes, Attr()]
    lhs_ragged_dims: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.OPERAND_0), always=True)] = ()
    rhs_group_dims: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(names=Of.OPERAND_1))] = ()


DOT_ALGORITHMS = frozenset({
    "dot_any_f8_any_f8_f32", "dot_any_f8_any_f8_f32_fast_accum", "dot_f16_f16_f16", "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16", "dot_bf16_bf16_f32", "dot_bf16_bf16_f32_x3", "dot_bf16_bf16_f32_x6", "dot_bf16_bf16_f32_x9",
    "dot_tf32_tf32_f32", "dot_tf32_tf32_f32_x3", "dot_f32_f32_f32", "dot_f64_f64_f64",
})  # fmt: skip
"""The least precision that a dot requests. Products are computed in f32 or wider in any case, as on XLA's CPU, so only
the last one makes a difference."""


def _dot_rule(operands: Sequence[Shape], attributes: DotAttributes, declared: Shape | None) -> Shape:
    """The result has the batch dimensions, then lhs's free ones, then rhs's free ones.

    Any element types may be combined: the products are computed in a type that holds both operands' types and the
    result's; the sums are converted to the result's type, by default the operands' common type.

    c1: both operands are arrays; c2: the result type is declared if the operands' types differ; c3: the batch and
    contracting dimensions are dimensions of their operand, each at most once; c4: both operands have the same number of
    them; c5: the same sizes; c6: the algorithm, if one is named, is one of XLA's.
    """
    require_arrays(Opcode.DOT, operands, 1)
    lhs, rhs = operands
    lhs_fixed = (*attributes.lhs_batch_dims, *attributes.lhs_contracting_dims)
    rhs_fixed = (*attributes.rhs_batch_dims, *attributes.rhs_contracting_dims)
    require_distinct_dimensions(Opcode.DOT, operands, lhs_fixed, lhs.rank, "lhs batch and contracting dimensions", 3)
    require_distinct_dimensions(Opcode.DOT, operands, rhs_fixed, rhs.rank, "rhs batch and contracting dimensions", 3)
    if len(attributes.lhs_batch_dims) != len(attributes.rhs_batch_dims) or len(attributes.lhs_contracting_dims) != len(
        attributes.rhs_contracting_dims
    ):
        fail(Opcode.DOT, operands, "both operands must have as many batch and as many contracting dimensions", 4)
    for i, j in zip(lhs_fixed, rhs_fixed):
        if lhs.dimensions[i] != rhs.dimensions[j]:
            sizes = f"{lhs.dimensions[i]} and {rhs.dimensions[j]}"
            fail(Opcode.DOT, operands, f"lhs dimension {i} must match rhs dimension {j}, but the sizes are {sizes}", 5)
    element_type = lhs.element
    if declared is not None and declared.element_type is not None:
        element_type = declared.element_type
    elif lhs.element is not rhs.element:
        fail(Opcode.DOT, operands, "the element types differ, so the result's must be given", 2)
    if attributes.algorithm and attributes.algorithm not in DOT_ALGORITHMS:
        known = ", ".join(sorted(DOT_ALGORITHMS))
        fail(Opcode.DOT, operands, f"algorithm {attributes.algorithm!r} is none of {known}", 6)
    dimensions = (
        *(lhs.dimensions[d] for d in attributes.lhs_batch_dims),
        *(size for d, size in enumerate(lhs.dimensions) if d not in lhs_fixed),
        *(size for d, size in enumerate(rhs.dimensions) if d not in rhs_fixed),
    )
    return array_of(element_type, dimensions)


def _ragged_dot_rule(operands: Sequence[Shape], attributes: RaggedDotAttributes, declared: Shape | None) -> Shape:
    """Operands: lhs, rhs, group sizes. One lhs dimension is ragged: the groups follow each other along it.

    If it is a free dimension, each group has a separate rhs, along `rhs_group_dims`. If it is a contracting dimension,
    the result has a first dimension of groups. If it is a batch dimension, the result is the result of dot.

    c1: operands are arrays, the group sizes are integers, with the groups along their last dimension; c2: there is one
    ragged dimension, and it is a dimension of the lhs; c3: the rhs has one group dimension, not a batch or contracting
    one, if the ragged dimension is free, otherwise none; c4: its size is the number of groups; c5: the group sizes have
    no other dimensions, or those lhs dimensions that they may vary along: batch dimensions, then the dimensions of the
    ragged one's kind before it. All other rules are dot's, with dot's labels.
    """
    opcode = Opcode.RAGGED_DOT
    lhs, rhs, sizes = operands
    if any(o.element_type is None for o in operands) or sizes.element_type not in INTEGERS or not sizes.dimensions:
        fail(opcode, operands, "operands must be arrays, group sizes integers of rank 1 or more", 1)
    if len(attributes.lhs_ragged_dims) != 1:
        why = f"ragged-dot expects exactly one lhs ragged dimension, not {list(attributes.lhs_ragged_dims)}"
        fail(opcode, operands, why, 2)
    if not 0 <= attributes.lhs_ragged_dims[0] < lhs.rank:
        why = (
            "ragged-dot requires lhs ragged dimension numbers to be nonnegative and less than the number of axes of "
            f"the lhs, not {list(attributes.lhs_ragged_dims)}"
        )
        fail(opcode, operands, why, 2)
    dot, ragged = attributes.dot, attributes.lhs_ragged_dims[0]
    groups = sizes.dimensions[-1]
    is_free = ragged not in (*dot.lhs_batch_dims, *dot.lhs_contracting_dims)
    group_dims = attributes.rhs_group_dims
    used = (*dot.rhs_batch_dims, *dot.rhs_contracting_dims, *group_dims)
    reason = None
    if is_free and len(group_dims) != 1:
        reason = "requires exactly one rhs group dimension when lhs ragged dimension is noncontracting"
    elif not is_free and group_dims:
        reason = "requires zero group dimensions in the rhs when lhs ragged dimension is contracting or batch"
    elif not all(0 <= d < rhs.rank for d in group_dims):
        reason = "requires rhs group dimension numbers to be nonnegative and less than the number of axes of the rhs"
    elif len(set(used)) != len(used):
        reason = "requires rhs group dimension numbers to be distinct from contracting and batch dimensions"
    if reason is not None:
        fail(opcode, operands, f"ragged-dot {reason}, not {list(group_dims)}", 3)
    if is_free and rhs.dimensions[group_dims[0]] != groups:
        found = rhs.dimensions[group_dims[0]]
        fail(opcode, operands, f"expected rhs group dimension size to be {groups}, got {found}", 4)
    if is_free:
        kept = [d for d in range(rhs.rank) if d not in group_dims]
        rhs = array_of(rhs.element, tuple(rhs.dimensions[d] for d in kept))
        places = {d: place for place, d in enumerate(kept)}

        def moved(dims: tuple[int, ...]) -> tuple[int, ...]:
            """A number that is out of range stays so, and dot's rule says it."""
            return tuple(places.get(d, d - (d > 0)) for d in dims)

        dot = replace(
            dot, rhs_batch_dims=moved(dot.rhs_batch_dims), rhs_contracting_dims=moved(dot.rhs_contracting_dims)
        )  # fmt: skip
    element = declared.element_type if declared is not None else None
    result = _dot_rule((lhs, rhs), dot, None if element is None else array_of(element, ()))
    if ragged in dot.lhs_batch_dims:
        prefix = list(dot.lhs_batch_dims[: dot.lhs_batch_dims.index(ragged)])
    elif not is_free:
        prefix = [*dot.lhs_batch_dims, *dot.lhs_contracting_dims[: dot.lhs_contracting_dims.index(ragged)]]
    else:
        fixed = (*dot.lhs_batch_dims, *dot.lhs_contracting_dims)
        prefix = [*dot.lhs_batch_dims, *(d for d in range(ragged) if d not in fixed)]
    varying = tuple(lhs.dimensions[d] for d in prefix)
    if sizes.dimensions[:-1] not in ((), varying):
        wanted = (*varying, groups)
        fail(opcode, operands, f"expected group_sizes to have shape {wanted}, got {sizes.dimensions}", 5)
    if ragged in dot.lhs_contracting_dims:
        return array_of(result.element, (groups, *result.dimensions))
    return result


def _scaled_dot_rule(operands: Sequence[Shape], attributes: DotAttributes, declared: Shape | None) -> Shape:
    """Operands: lhs, rhs, and a scale for each; an element of a scale multiplies a block of the operand.

    c1: operands are real arrays; c2: a scale has its operand's rank, and its sizes divide the operand's. All other
    rules are dot's, with dot's labels.
    """
    opcode = Opcode.SCALED_DOT
    if any(o.element_type is None or o.element.is_complex for o in operands):
        fail(opcode, operands, "operands must be arrays of real numbers", 1)
    for operand, scale in zip(operands[:2], operands[2:]):
        blocks = zip(operand.dimensions, scale.dimensions)
        if operand.rank != scale.rank or any(many % few if few else many for many, few in blocks):
            fail(opcode, operands, f"the sizes of the scale {scale} must divide those of {operand}", 2)
    return _dot_rule(operands[:2], attributes, declared)


SPECS: tuple[OpSpec, ...] = (
    OpSpec(Opcode.DOT, "dot", 2, DotAttributes, _dot_rule, Trait.EXPENSIVE),
    OpSpec(Opcode.RAGGED_DOT, "dot", 3, RaggedDotAttributes, _ragged_dot_rule, Trait.EXPENSIVE),
    OpSpec(Opcode.SCALED_DOT, "dot", 4, DotAttributes, _scaled_dot_rule, Trait.EXPENSIVE),
)
