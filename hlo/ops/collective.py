"""Collectives between replicas and devices: reductions, gathers, permutations; replica-id and partition-id.

Source: XLA's ShapeInference (InferAllReduceShape, InferAllGatherShape, InferReduceScatterShape, InferAllToAllShape,
InferCollectivePermuteShape, ...) and ShapeVerifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..element_type import ElementType
from ..instruction import Attributes, HloComputation, HloInstruction
from ..opcode import Opcode
from ..replica_groups import EVERYONE, ReplicaGroups
from ..shape import Shape
from ..support.records import dataclass
from ..text.codecs import BOOLEAN, COMPUTATION, INTEGER, LISTS_OF_INTEGERS, ONE_DIMENSION, PAIRS
from ..text.codecs_devices import REPLICA_GROUPS
from .checks import fail, in_default_layout
from .declare import Attr, Dims, Of
from .spec import OpSpec, Trait


def _is_permutation(instruction: HloInstruction) -> bool:
    return instruction.opcode in (Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_PERMUTE_START)


def _is_no_permutation(instruction: HloInstruction) -> bool:
    return not _is_permutation(instruction)


@dataclass(frozen=True, slots=True)
class CollectiveAttributes(Attributes):
    """The attributes of all collectives; a field that an opcode does not use keeps its default."""

    replica_groups: Annotated[
        ReplicaGroups, Attr(REPLICA_GROUPS, always=True, when=_is_no_permutation, after="channel_id")
    ] = EVERYONE
    channel_id: Annotated[int | None, Attr(INTEGER)] = None
    use_global_device_ids: Annotated[bool, Attr(BOOLEAN, when=_is_no_permutation, after="constrain_layout")] = False
    constrain_layout: Annotated[bool, Attr(BOOLEAN, when=_is_no_permutation)] = False
    dimension: Annotated[
        int | None,
        Attr(ONE_DIMENSION, key="dimensions", dims=Dims(names=Of.ARRAYS), when=_is_no_permutation),
    ] = None
    """The dimension along which all-gather joins and reduce-scatter cuts; all-to-all: None for the tuple form."""
    to_apply: Annotated[HloComputation | None, Attr(COMPUTATION, when=_is_no_permutation)] = None
    """all-reduce, reduce-scatter."""
    source_target_pairs: Annotated[
        tuple[tuple[int, int], ...], Attr(PAIRS, always=True, when=_is_permutation)
    ] = ()
    """collective-permute."""
    slice_sizes: Annotated[tuple[tuple[int, ...], ...], Attr(LISTS_OF_INTEGERS, when=_is_permutation)] = ()
    """collective-permute of slices."""


@dataclass(frozen=True, slots=True)
class CollectiveBroadcastAttributes(CollectiveAttributes):
    has_dynamic_root: Annotated[bool, Attr(BOOLEAN, after="replica_groups")] = False
    """The last operand, s32[N], says for each of the N other operands which member of the group gives its value;
    otherwise it is the first member."""


_FAMILY = "collective"
_O = Opcode
COLLECTIVES = frozenset(
    {
        *(_O.ALL_REDUCE, _O.ALL_GATHER, _O.REDUCE_SCATTER, _O.ALL_TO_ALL, _O.COLLECTIVE_BROADCAST),
        *(_O.COLLECTIVE_PERMUTE, _O.RAGGED_ALL_TO_ALL),
    }
)
"""The ops in which devices wait for each other, without their halves in time."""
_U32 = Shape.array(ElementType.U32)


def _require_operands(opcode: Opcode, operands: Sequence[Shape], rule: int) -> None:
    if not operands or any(o.is_tuple for o in operands):
        fail(opcode, operands, "there must be operands, and these must be arrays", rule)


def _require_groups(opcode: Opcode, operands: Sequence[Shape], attributes: CollectiveAttributes, rule: int) -> None:
    groups = attributes.replica_groups.groups
    members = [device for group in groups for device in group]
    if any(device < 0 for device in members) or len(set(members)) != len(members) or not all(groups):
        text = attributes.replica_groups.text
        fail(opcode, operands, f"the groups {text} must hold numbers from 0, none twice, and not be empty", rule)


def _require_reducer(opcode: Opcode, operands: Sequence[Shape], attributes: CollectiveAttributes, rule: int) -> None:
    reducer = attributes.to_apply
    if reducer is None:
        fail(opcode, operands, "`to_apply` must name the computation that combines two elements", rule)
    shapes = [*(p.shape for p in reducer.parameters), reducer.root.shape]
    if len(shapes) != 3 or not all(s.is_scalar and s.element_type is shapes[0].element_type for s in shapes):
        fail(opcode, operands, f"{reducer.name} must take two scalars of one type and return one", rule)


def _group_size(attributes: CollectiveAttributes) -> int | None:
    """The number of devices in a group; None if the groups are empty or differ in size."""
    sizes = {len(group) for group in attributes.replica_groups.groups}
    return sizes.pop() if len(sizes) == 1 else None


def _one_or_tuple(shapes: Sequence[Shape]) -> Shape:
    found = [in_default_layout(s) for s in shapes]
    return found[0] if len(found) == 1 else Shape.tuple(found)


def _require_dimension(
    opcode: Opcode, operands: Sequence[Shape], attributes: CollectiveAttributes, rule: int
) -> int:
    dimension = attributes.dimension
    if dimension is None or not all(0 <= dimension < o.rank for o in operands):
        fail(opcode, operands, f"every operand must have the dimension {dimension}", rule)
    return dimension


def _all_reduce(opcode: Opcode, operands: Sequence[Shape], attributes: CollectiveAttributes) -> Shape:
    _require_operands(opcode, operands, 1)
    _require_reducer(opcode, operands, attributes, 2)
    _require_groups(opcode, operands, attributes, 3)
    return _one_or_tuple(operands)


def _all_reduce_rule(operands: Sequence[Shape], attributes: CollectiveAttributes, declared: Shape | None) -> Shape:
    """The operand, or the tuple of several. c1: the operands are arrays; c2: `to_apply` takes two scalars of one type
    and returns one; c3: groups are not empty, and no device is in two."""
    return _all_reduce(_O.ALL_REDUCE, operands, attributes)


def _all_reduce_start_rule(
    operands: Sequence[Shape], attributes: CollectiveAttributes, declared: Shape | None
) -> Shape:
    """As all-reduce, with the same rules c1 to c3."""
    return _all_reduce(_O.ALL_REDUCE_START, operands, attributes)


def _is_multiple(large: int, small: int, factor: int | None) -> bool:
    """True if `large` is `factor` times `small`; any multiple if `factor` is None."""
    if factor is not None:
        return large == small * factor
    return large % small == 0 if small else large == 0


def _counts_replicas(attributes: CollectiveAttributes) -> bool:
    """True if a group lists replicas and all partitions take part: then the number of devices is not known."""
    return attributes.channel_id is not None and not attributes.use_global_device_ids


def _resized(
    opcode: Opcode, operands: Sequence[Shape], attributes: CollectiveAttributes, declared: Shape | None, grow: bool,
    rule: int,
) -> Shape:  # fmt: skip
    """The operands with `dimension` multiplied (or divided) by the size of a group.

    Without groups the size is the number of replicas, times the number of partitions if there is a channel; only the
    declared shape shows it.
    """
    dimension = _require_dimension(opcode, operands, attributes, 2)
    factor = None if _counts_replicas(attributes) and declared is not None else _group_size(attributes)
    targets: Sequence[Shape | None] = [None] * len(operands)
    if declared is not None and len(operands) == 1:
        targets = [declared]
    elif declared is not None and declared.tuple_shapes is not None and len(declared.elements) == len(operands):
        targets = declared.elements
    found = []
    for operand, target in zip(operands, targets, strict=True):
        before = operand.dimensions[dimension]
        after = None
        if factor is not None:
            after = before * factor if grow else before // factor
        elif target is not None and target.is_array and target.rank == operand.rank:
            after = target.dimensions[dimension]
        if after is None or not _is_multiple(*((after, before) if grow else (before, after)), factor):
            why = f"size {before} of dimension {dimension} does not become {after} in groups of {factor or 'all'}"
            fail(opcode, operands, why, rule)
        dimensions = (*operand.dimensions[:dimension], after, *operand.dimensions[dimension + 1 :])
        found.append(Shape.array(operand.element, dimensions))
    return _one_or_tuple(found)


def _all_gather_rule(operands: Sequence[Shape], attributes: CollectiveAttributes, declared: Shape | None) -> Shape:
    """c1: the operands are arrays; c2: each has `dimension`; c3: groups are not empty, and no device is in two;
    c4: `dimension` is multiplied by the number of devices in a group."""
    _require_operands(_O.ALL_GATHER, operands, 1)
    _require_groups(_O.ALL_GATHER, operands, attributes, 3)
    return _resized(_O.ALL_GATHER, operands, attributes, declared, True, 4)


def _all_gather_start_rule(
    operands: Sequence[Shape], attributes: CollectiveAttributes, declared: Shape | None
) -> Shape:
    """(operand, result), or a tuple of tuples for several. c1 to c4 are the rules of all-gather; c5: the declared type
    is such a tuple."""
    opcode = _O.ALL_GATHER_START
    _require_operands(opcode, operands, 1)
    _require_groups(opcode, operands, attributes, 3)
    if declared is not None and (declared.is_array or len(declared.elements) != 2):
        fail(opcode, operands, f"the result must be (operand, gathered), not {declared}", 5)
    gathered = None if declared is None else declared.elements[1]
    result = _resized(opcode, operands, attributes, gathered, True, 4)
    return Shape.tuple([_one_or_tuple(operands), result])


def _reduce_scatter_rule(
    operands: Sequence[Shape], attributes: CollectiveAttributes, declared: Shape | None
) -> Shape:
    """c1: the operands are arrays; c2: each has `dimension`; c3: groups are not empty, and no device is in two;
    c4: `dimension` is divided by the number of devices in a group; c5: `to_apply` takes two scalars of one type
    and returns one."""
    opcode = _O.REDUCE_SCATTER
    _require_operands(opcode, operands, 1)
    _require_groups(opcode, operands, attributes, 3)
    _require_reducer(opcode, operands, attributes, 5)
    return _resized(opcode, operands, attributes, declared, False, 4)


def _all_to_all_rule(operands: Sequence[Shape], attributes: CollectiveAttributes, declared: Shape | None) -> Shape:
    """With `dimension` (and one operand): the type of the operand; without: the tuple of the operands.

    c1: the operands are arrays; c2: the array form has one operand with `dimension`, which is a multiple of the size of
    a group; c3: groups are not empty, and no device is in two; c4: the tuple form has as many operands as a group has
    devices, all of one type.
    """
    opcode = _O.ALL_TO_ALL
    _require_operands(opcode, operands, 1)
    _require_groups(opcode, operands, attributes, 3)
    size = _group_size(attributes)
    if attributes.dimension is None:
        if size not in (None, len(operands)) or not all(o.compatible(operands[0]) for o in operands):
            fail(opcode, operands, f"groups of {size} need as many operands, all of one type", 4)
        return Shape.tuple([in_default_layout(o) for o in operands])
    dimension = _require_dimension(opcode, operands, attributes, 2)
    if len(operands) != 1 or operands[0].dimensions[dimension] % (size or 1):
        fail(opcode, operands, f"one operand whose dimension {dimension} is a multiple of {size} is needed", 2)
    return in_default_layout(operands[0])


def _collective_broadcast_rule(
    operands: Sequence[Shape], attributes: CollectiveBroadcastAttributes, declared: Shape | None
) -> Shape:
    """The operand, or the tuple of several, without the roots. c1: the operands are arrays; c2: groups are not empty,
    and no device is in two; c3: with `has_dynamic_root` there are at least two operands, and the last has an s32 for
    each of the others."""
    opcode = _O.COLLECTIVE_BROADCAST
    _require_operands(opcode, operands, 1)
    _require_groups(opcode, operands, attributes, 2)
    if not attributes.has_dynamic_root:
        return _one_or_tuple(operands)
    *data, roots = operands
    if not data or roots.element_type is not ElementType.S32 or roots.dimensions != (len(data),):
        fail(opcode, operands, f"the last operand must be s32[{len(data)}], the roots of the others", 3)
    return _one_or_tuple(data)


def _require_pairs(opcode: Opcode, operands: Sequence[Shape], attributes: CollectiveAttributes, rule: int) -> None:
    pairs = attributes.source_target_pairs
    targets = [target for _, target in pairs]
    if len(set(targets)) != len(targets) or any(device < 0 for pair in pairs for device in pair):
        fail(opcode, operands, f"the pairs {list(pairs)} must hold numbers from 0, and no target twice", rule)


def _is_in_place(operands: Sequence[Shape]) -> bool:
    """True for the form that permutes slices. Operands: input, output, tuples of the slices' start indices in each."""
    return len(operands) == 4 and operands[2].is_tuple and operands[3].is_tuple


def _collective_permute_rule(
    operands: Sequence[Shape], attributes: CollectiveAttributes, declared: Shape | None
) -> Shape:
    """The operand, or the tuple of several; in the form in place, the second operand. c1: the operands are arrays,
    except in that form; c2: no device is the target of two pairs."""
    _require_pairs(_O.COLLECTIVE_PERMUTE, operands, attributes, 2)
    if _is_in_place(operands):
        return operands[1]
    _require_operands(_O.COLLECTIVE_PERMUTE, operands, 1)
    return _one_or_tuple(operands)


def _collective_permute_start_rule(
    operands: Sequence[Shape], attributes: CollectiveAttributes, declared: Shape | None
) -> Shape:
    """(operand, result, contexts...); the contexts, u32[], are optional. c1 and c2 are the rules of collective-permute;
    c3: a declared type is such a tuple."""
    opcode = _O.COLLECTIVE_PERMUTE_START
    _require_pairs(opcode, operands, attributes, 2)
    if _is_in_place(operands):
        given, result = operands[:2]
    else:
        _require_operands(opcode, operands, 1)
        given = result = _one_or_tuple(operands)
    if declared is None:
        return Shape.tuple([given, result])
    elements = declared.tuple_shapes or ()
    if (
        len(elements) < 2
        or not (elements[0].compatible(given) and elements[1].compatible(result))
        or not all(s.compatible(_U32) for s in elements[2:])
    ):
        fail(opcode, operands, f"the result must be ({given}, {result}, contexts of u32[]), not {declared}", 3)
    return declared


def _ragged_all_to_all_rule(
    operands: Sequence[Shape], attributes: CollectiveAttributes, declared: Shape | None
) -> Shape:
    """The second operand. Operands: input, output, input offsets, send sizes, output offsets, receive sizes.

    c1: there are six arrays; c2: input and output have one element type, one rank of at least 1 and the same dimensions
    after the first; c3: the last four are s32 or s64 arrays of rank 1, all of one type; c4: groups are not empty, and
    no device is in two.
    """
    opcode = _O.RAGGED_ALL_TO_ALL
    if len(operands) != 6 or any(o.is_tuple for o in operands):
        fail(opcode, operands, "there must be six arrays", 1)
    data, output, *sizes = operands
    if data.element_type is not output.element_type or not data.rank or data.rank != output.rank:
        fail(opcode, operands, "input and output must have one element type and one rank of at least 1", 2)
    if data.dimensions[1:] != output.dimensions[1:]:
        fail(opcode, operands, "input and output must have the same dimensions after the first", 2)
    of_sizes = (ElementType.S32, ElementType.S64)
    if any(s.rank != 1 or not s.compatible(sizes[0]) or s.element_type not in of_sizes for s in sizes):
        fail(opcode, operands, "offsets and sizes must be s32 or s64 arrays of rank 1, all of one type", 3)
    _require_groups(opcode, operands, attributes, 4)
    return in_default_layout(output)


def _all_reduce_done_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """The operand: the result of all-reduce-start."""
    return operands[0]


def _second_element(opcode: Opcode, operand: Shape) -> Shape:
    if operand.tuple_shapes is None or len(operand.tuple_shapes) < 2:
        fail(opcode, [operand], "the operand must be (operand, result, ...)", 1)
    return operand.tuple_shapes[1]


def _all_gather_done_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """Element 1 of the operand. c1: the operand is the result of all-gather-start."""
    return _second_element(_O.ALL_GATHER_DONE, operands[0])


def _collective_permute_done_rule(
    operands: Sequence[Shape], attributes: Attributes, declared: Shape | None
) -> Shape:
    """Element 1 of the operand. c1: the operand is the result of collective-permute-start."""
    return _second_element(_O.COLLECTIVE_PERMUTE_DONE, operands[0])


def _id_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """u32[]."""
    return _U32


SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.ALL_GATHER, _FAMILY, None, CollectiveAttributes, _all_gather_rule),
    OpSpec(_O.ALL_GATHER_START, _FAMILY, None, CollectiveAttributes, _all_gather_start_rule),
    OpSpec(_O.ALL_REDUCE, _FAMILY, None, CollectiveAttributes, _all_reduce_rule, Trait.APPLIES),
    OpSpec(_O.ALL_REDUCE_START, _FAMILY, None, CollectiveAttributes, _all_reduce_start_rule, Trait.APPLIES),
    OpSpec(_O.ALL_TO_ALL, _FAMILY, None, CollectiveAttributes, _all_to_all_rule),
    OpSpec(_O.COLLECTIVE_BROADCAST, _FAMILY, None, CollectiveBroadcastAttributes, _collective_broadcast_rule),
    OpSpec(_O.COLLECTIVE_PERMUTE, _FAMILY, None, CollectiveAttributes, _collective_permute_rule),
    OpSpec(_O.COLLECTIVE_PERMUTE_START, _FAMILY, None, CollectiveAttributes, _collective_permute_start_rule),
    OpSpec(_O.RAGGED_ALL_TO_ALL, _FAMILY, None, CollectiveAttributes, _ragged_all_to_all_rule),
    OpSpec(_O.REDUCE_SCATTER, _FAMILY, None, CollectiveAttributes, _reduce_scatter_rule, Trait.APPLIES),
    OpSpec(_O.ALL_GATHER_DONE, _FAMILY, 1, Attributes, _all_gather_done_rule),
    OpSpec(_O.ALL_REDUCE_DONE, _FAMILY, 1, Attributes, _all_reduce_done_rule),
    OpSpec(_O.COLLECTIVE_PERMUTE_DONE, _FAMILY, 1, Attributes, _collective_permute_done_rule),
    OpSpec(_O.PARTITION_ID, _FAMILY, 0, Attributes, _id_rule),
    OpSpec(_O.REPLICA_ID, _FAMILY, 0, Attributes, _id_rule),
)
