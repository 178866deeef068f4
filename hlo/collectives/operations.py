"""Each collective as the blocks that one device sends and receives, and the computation on the received ones.

The functions read the operands and fill the results, which do not overlap with them. A reduction combines the devices'
values in the order of their ranks, element by element: the bits depend neither on the device that combines, nor on the
division of arrays. So a large array is cut into one part for each device of the group; each reduces its own part and
gives it to the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ..errors import ExecutionError
from .communicator import Blocks, Communicator, Meeting, NDArray

Combine: TypeAlias = Callable[[Sequence[NDArray], NDArray], None]
"""combine(parts, result): one array of rank 1 for each member of the group, in the order of ranks; fills the result."""

LARGE = 1 << 15
"""Bytes. Smaller arrays are sent to all at once, and each device reduces all of them: one exchange instead of two."""


def all_reduce(
    device: Communicator, meeting: Meeting, members: Sequence[int], operands: Sequence[NDArray],
    results: Sequence[NDArray], combine: Combine,
) -> None:  # fmt: skip
    """Every member gets the combination of all members' operands."""
    flat, reduced = [_flat(o) for o in operands], [_flat_target(r) for r in results]
    if len(members) == 1:
        for source, target in zip(flat, reduced, strict=True):
            target[...] = source
    elif sum(f.nbytes for f in flat) < LARGE:
        with _Exchange(device, meeting, members, [flat] * len(members)) as received:
            _combine_each(received, reduced, combine)
    else:
        cuts = [_cuts(f.size, len(members)) for f in flat]
        parts = [[f[c[k] : c[k + 1]] for f, c in zip(flat, cuts)] for k in range(len(members))]
        targets = [[r[c[k] : c[k + 1]] for r, c in zip(reduced, cuts)] for k in range(len(members))]
        mine = targets[members.index(device.device)]
        with _Exchange(device, meeting, members, parts) as received:
            _combine_each(received, mine, combine)
        with _Exchange(device, meeting, members, [mine] * len(members), like=targets) as received:
            for theirs, found in zip(targets, received, strict=True):
                if theirs is not mine:
                    _fill(theirs, found)
    _store(reduced, results)


def reduce_scatter(
    device: Communicator, meeting: Meeting, members: Sequence[int], operands: Sequence[NDArray],
    results: Sequence[NDArray], dimension: int, combine: Combine,
) -> None:  # fmt: skip
    """Member k gets part k, along `dimension`, of the combination of all members' operands."""
    cut = [np.split(o, len(members), dimension) for o in operands]
    reduced = [_flat_target(r) for r in results]
    parts = [[_flat(c[k]) for c in cut] for k in range(len(members))]
    with _Exchange(device, meeting, members, parts) as received:
        if len(members) == 1:
            _fill(reduced, parts[0])
        else:
            _combine_each(received, reduced, combine)
    _store(reduced, results)


def all_gather(
    device: Communicator, meeting: Meeting, members: Sequence[int], operands: Sequence[NDArray],
    results: Sequence[NDArray], dimension: int,
) -> None:  # fmt: skip
    """Every member gets all members' operands, one after the other along `dimension`."""
    flat = [_flat(o) for o in operands]
    with _Exchange(device, meeting, members, [flat] * len(members)) as received:
        for k, blocks in enumerate(received):
            for block, operand, result in zip(blocks, operands, results, strict=True):
                _slice(result, dimension, k, len(members))[...] = block.reshape(operand.shape)


def all_to_all(
    device: Communicator, meeting: Meeting, members: Sequence[int], operand: NDArray, result: NDArray, dimension: int
) -> None:
    """Member k gets part k, along `dimension`, of each member's operand, one after the other."""
    parts = np.split(operand, len(members), dimension)
    with _Exchange(device, meeting, members, [[_flat(p)] for p in parts]) as received:
        for k, (block,) in enumerate(received):
            _slice(result, dimension, k, len(members))[...] = block.reshape(parts[0].shape)


def all_to_all_of_tuple(
    device: Communicator, meeting: Meeting, members: Sequence[int], operands: Sequence[NDArray],
    results: Sequence[NDArray],
) -> None:  # fmt: skip
    """Member k gets operand k of each member. ExecutionError unless there is an operand for each member."""
    if len(operands) != len(members):
        group = "one device" if len(members) == 1 else f"{len(members)} devices"
        raise ExecutionError(f"{meeting} of {len(operands)} operands in a group of {group}")
    with _Exchange(device, meeting, members, [[_flat(o)] for o in operands]) as received:
        for result, (block,) in zip(results, received, strict=True):
            result[...] = block.reshape(result.shape)


def collective_broadcast(
    device: Communicator, meeting: Meeting, members: Sequence[int], operands: Sequence[NDArray],
    results: Sequence[NDArray], roots: Sequence[int],
) -> None:  # fmt: skip
    """Every member gets operand k of member `roots[k]`. ExecutionError if the group has no such member."""
    if not all(0 <= root < len(members) for root in roots):
        raise ExecutionError(f"{meeting} from members {list(roots)} of a group of {len(members)}")
    rank = members.index(device.device)
    mine = [_flat(o) for o, root in zip(operands, roots, strict=True) if root == rank]
    for operand, result, root in zip(operands, results, roots):
        if root == rank:
            result[...] = operand
    sends = {m: [_bytes(o) for o in mine] for m in members if mine and m != device.device}
    expected: dict[int, list[NDArray]] = {}
    for result, root in zip(results, roots):
        if root != rank:
            expected.setdefault(members[root], []).append(result)
    with device.exchange(meeting, sends, _sizes(expected)) as received:
        for source, targets in expected.items():
            for target, block in zip(targets, received[source], strict=True):
                target[...] = block.view(target.dtype).reshape(target.shape)


def collective_permute(
    device: Communicator, meeting: Meeting, pairs: Sequence[tuple[int, int]], operands: Sequence[NDArray],
    results: Sequence[NDArray],
) -> None:  # fmt: skip
    """The target of each (source, target) gets the source's operands; a device that is no target gets zeros."""
    me = device.device
    flat = [_bytes(_flat(o)) for o in operands]
    sends = {target: flat for source, target in pairs if source == me and target != me}
    source = next((source for source, target in pairs if target == me), None)
    expected = {} if source is None or source == me else {source: [r.nbytes for r in results]}
    with device.exchange(meeting, sends, expected) as received:
        for k, (operand, result) in enumerate(zip(operands, results, strict=True)):
            if source is None:
                result[...] = np.zeros((), result.dtype)
            elif source == me:
                result[...] = operand
            else:
                result[...] = received[source][k].view(result.dtype).reshape(result.shape)


def collective_permute_of_slices(
    device: Communicator, meeting: Meeting, pairs: Sequence[tuple[int, int]], operands: Sequence[NDArray],
    results: Sequence[NDArray], slice_sizes: Sequence[Sequence[int]],
) -> None:  # fmt: skip
    """The target of each pair gets the source's slices, and puts them into its second operand.

    Operands: input, output, then the start indices of each slice in the input and in the output; they are clamped.
    """
    data, output, *indices = operands
    count = len(slice_sizes)
    rank = data.ndim
    if len(indices) != 2 * count * rank:
        raise ExecutionError(f"{meeting} of {count} slices with {len(indices)} start indices, not {2 * count * rank}")
    starts = [[int(i) for i in indices[k * rank : (k + 1) * rank]] for k in range(2 * count)]
    (result,) = results
    result[...] = output
    me = device.device
    mine = [_flat(data[_window(data, starts[k], slice_sizes[k])]) for k in range(count)]
    sends = {target: [_bytes(m) for m in mine] for source, target in pairs if source == me and target != me}
    source = next((source for source, target in pairs if target == me), None)
    expected = {} if source is None or source == me else {source: [m.nbytes for m in mine]}
    with device.exchange(meeting, sends, expected) as received:
        if source is not None:
            blocks = mine if source == me else received[source]
            for k, block in enumerate(blocks):
                place = result[_window(result, starts[count + k], slice_sizes[k])]
                place[...] = block.view(result.dtype).reshape(place.shape)


def _window(array: NDArray, start: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    """As a dynamic-slice takes it."""
    first = [max(0, min(s, extent - size)) for s, extent, size in zip(start, array.shape, sizes, strict=True)]
    return tuple(slice(f, f + size) for f, size in zip(first, sizes))


def ragged_all_to_all(
    device: Communicator, meeting: Meeting, members: Sequence[int], operands: Sequence[NDArray], result: NDArray
) -> None:
    """Each member sends ranges of rows to each member, which puts them where the sender says.

    Operands: input, output, then for each member (or several for each, one after the other) the first row of the input
    and the number of rows to send, the first row in the receiver's output, and the number of rows to receive.
    ExecutionError for rows outside of the arrays.
    """
    data, output, starts, sizes, targets, expected = operands
    result[...] = output
    each = len(sizes) // len(members)
    if each * len(members) != len(sizes):
        raise ExecutionError(f"{meeting} with {len(sizes)} ranges in a group of {len(members)} devices")
    for start, size, held in [*zip(starts.tolist(), sizes.tolist(), [len(data)] * len(sizes))]:
        if min(start, size) < 0 or start + size > held:
            raise ExecutionError(f"{meeting} sends {size} rows from row {start} of {held}")
    if min(expected.tolist(), default=0) < 0:
        raise ExecutionError(f"{meeting} receives {expected.tolist()} rows")
    row_bytes = int(np.prod(data.shape[1:], dtype=np.int64)) * data.dtype.itemsize
    sends: dict[int, Blocks] = {}
    receives: dict[int, list[int]] = {}
    kept: list[NDArray] = []
    for k, member in enumerate(members):
        ranges = range(k * each, (k + 1) * each)
        where = targets[k * each : (k + 1) * each].astype(np.int64)
        rows = [_flat(data[starts[r] : starts[r] + sizes[r]]) for r in ranges]
        if member == device.device:
            kept = [where, *rows]
        else:
            sends[member] = [_bytes(block) for block in (where, *rows)]
            receives[member] = [8 * each, *(int(expected[r]) * row_bytes for r in ranges)]
    with device.exchange(meeting, sends, receives) as received:
        for member in members:
            first, *rows = kept if member == device.device else list(received[member])
            for target, block in zip(first.view(np.int64).tolist(), rows, strict=True):
                part = block.view(data.dtype).reshape(-1, *data.shape[1:]) if block.size else data[:0]
                if target < 0 or target + len(part) > len(result):
                    raise ExecutionError(f"{meeting} puts {len(part)} rows at row {target} of {len(result)}")
                result[target : target + len(part)] = part


class _Exchange:
    """`with`: gives `parts[k]` to member k; the bound value is the list of parts that each member gave to this device.

    They have the types and sizes of this device's part for itself, or of those in `like`.
    """

    def __init__(
        self, device: Communicator, meeting: Meeting, members: Sequence[int], parts: Sequence[Sequence[NDArray]],
        like: Sequence[Sequence[NDArray]] | None = None,
    ) -> None:  # fmt: skip
        rank = members.index(device.device)
        others = [k for k in range(len(members)) if k != rank]
        self._own, self._rank, self._members = parts[rank], rank, members
        self._like = like or [self._own] * len(members)
        sends = {members[k]: [_bytes(p) for p in parts[k]] for k in others}
        self._exchange = device.exchange(meeting, sends, _sizes({members[k]: self._like[k] for k in others}))

    def __enter__(self) -> list[Sequence[NDArray]]:
        received = self._exchange.__enter__()
        return [
            self._own if k == self._rank else [b.view(o.dtype) for b, o in zip(received[member], self._like[k])]
            for k, member in enumerate(self._members)
        ]

    def __exit__(self, *raised: object) -> bool | None:
        return self._exchange.__exit__(*raised)  # type: ignore[arg-type]


def _combine_each(received: Sequence[Sequence[NDArray]], targets: Sequence[NDArray], combine: Combine) -> None:
    for k, target in enumerate(targets):
        if target.size:
            combine([blocks[k] for blocks in received], target)


def _sizes(arrays: Mapping[int, Sequence[NDArray]]) -> dict[int, list[int]]:
    return {member: [a.nbytes for a in each] for member, each in arrays.items()}


def _cuts(size: int, count: int) -> list[int]:
    """Where an array of `size` elements is cut into `count` parts of about the same size."""
    return [size * k // count for k in range(count + 1)]


def _flat(array: NDArray) -> NDArray:
    return np.ascontiguousarray(array).reshape(-1)


def _bytes(flat: NDArray) -> NDArray:
    return flat.view(np.uint8)


def _flat_target(result: NDArray) -> NDArray:
    """`result` with rank 1; if it has gaps, other memory from which `_store` fills it."""
    return result.reshape(-1) if result.flags.c_contiguous else np.empty(result.size, result.dtype)


def _store(flat: Sequence[NDArray], results: Sequence[NDArray]) -> None:
    for source, result in zip(flat, results, strict=True):
        if not result.flags.c_contiguous:
            result[...] = source.reshape(result.shape)


def _fill(targets: Sequence[NDArray], sources: Sequence[NDArray]) -> None:
    for target, source in zip(targets, sources, strict=True):
        target[...] = source


def _slice(array: NDArray, dimension: int, k: int, count: int) -> NDArray:
    """Part k of `count` along `dimension`."""
    size = array.shape[dimension] // count
    return array[(*[slice(None)] * dimension, slice(k * size, (k + 1) * size))]
