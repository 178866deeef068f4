"""Op cases of collectives, run by the only device: replica 0 of partition 0, alone in its group."""

from __future__ import annotations

from collections.abc import Iterator

from ..hlo import ElementType, Shape
from ..hlo.ops.collective import CollectiveAttributes, CollectiveBroadcastAttributes
from ..hlo.replica_groups import ReplicaGroups
from .computations import binary_computation
from .op_case import NUMBERS, Array, E, O, OpCase, make_case, shape_of, sizes_of
from .op_values import fixed

_NO_GROUPS = ReplicaGroups()
_ALONE = ReplicaGroups(((0,),), "{{0}}")


def _reducing(t: ElementType, groups: ReplicaGroups, dimension: int | None = None) -> CollectiveAttributes:
    return CollectiveAttributes(groups, dimension=dimension, to_apply=binary_computation(O.ADD, t))


def cases() -> Iterator[OpCase]:
    """The cases of the family."""
    for t in NUMBERS:
        for dims in sizes_of(t, NUMBERS, (6, 4)):
            x = Array(t, dims)
            yield make_case(O.ALL_REDUCE, [x], x.shape, _reducing(t, _NO_GROUPS))
            permuted = CollectiveAttributes(source_target_pairs=((0, 0),))
            yield make_case(O.COLLECTIVE_PERMUTE, [x], x.shape, permuted, note="self")
            if dims:
                along = CollectiveAttributes(_ALONE, dimension=0)
                yield make_case(O.ALL_GATHER, [x], x.shape, along)
                yield make_case(O.ALL_TO_ALL, [x], x.shape, along)
                # XLA adds the operand to 0.0, also where there is nothing to add up.
                yield make_case(O.REDUCE_SCATTER, [x], x.shape, _reducing(t, _ALONE, 0), signed_zeros=False)
    x, y = Array(E.F32, (2, 3)), Array(E.F32, (4,))
    both = Shape.tuple([x.shape, y.shape])
    yield make_case(O.ALL_REDUCE, [x, y], both, _reducing(E.F32, _ALONE))
    yield make_case(O.ALL_REDUCE_START, [x], x.shape, _reducing(E.F32, _ALONE))
    yield make_case(O.ALL_REDUCE_DONE, [x], x.shape)
    along = CollectiveAttributes(_ALONE, dimension=0)
    yield make_case(O.ALL_GATHER, [x, y], both, along)
    yield make_case(O.ALL_GATHER_START, [x], Shape.tuple([x.shape, x.shape]), along)
    yield make_case(O.ALL_GATHER_START, [x, y], Shape.tuple([both, both]), along)
    yield make_case(O.ALL_GATHER_DONE, [(x, x)], x.shape)
    yield make_case(O.ALL_TO_ALL, [x], Shape.tuple([x.shape]), CollectiveAttributes(_ALONE), note="tuple")
    yield make_case(O.COLLECTIVE_BROADCAST, [x], x.shape, CollectiveBroadcastAttributes(_ALONE))
    elsewhere = CollectiveBroadcastAttributes(ReplicaGroups(((1, 2),), "{{1,2}}"))
    yield make_case(O.COLLECTIVE_BROADCAST, [x], x.shape, elsewhere, note="none")
    chosen = CollectiveBroadcastAttributes(_ALONE, has_dynamic_root=True)
    roots = [Array(E.S32, (count,), fixed(0)) for count in (1, 2)]
    yield make_case(O.COLLECTIVE_BROADCAST, [x, roots[0]], x.shape, chosen, note="root")
    yield make_case(O.COLLECTIVE_BROADCAST, [x, y, roots[1]], both, chosen, note="roots")
    yield make_case(O.COLLECTIVE_PERMUTE, [x], x.shape, CollectiveAttributes(), note="none")
    pair = Shape.tuple([x.shape, x.shape])
    to_itself = CollectiveAttributes(source_target_pairs=((0, 0),))
    yield make_case(O.COLLECTIVE_PERMUTE_START, [x], pair, to_itself)
    yield make_case(O.COLLECTIVE_PERMUTE_DONE, [(x, x)], x.shape)
    for t in (E.S32, E.S64):
        starts, sizes, ends = (Array(t, (2,), fixed(v)) for v in ((3, 0), (2, 3), (0, 4)))
        operands = [Array(E.F32, (5, 2)), Array(E.F32, (7, 2)), starts, sizes, ends, sizes]
        attributes = CollectiveAttributes(_ALONE)
        yield make_case(O.RAGGED_ALL_TO_ALL, operands, shape_of(E.F32, (7, 2)), attributes, note=t.value)
    yield make_case(O.PARTITION_ID, [], shape_of(E.U32))
    yield make_case(O.REPLICA_ID, [], shape_of(E.U32))
