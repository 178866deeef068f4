"""Runs the program of one device on all devices at once, instruction by instruction, with the evaluator.

All devices go the same way through loops, as partitioned programs do; branches may differ if nothing in them waits for
another device. Written from the operation semantics, for tests of the partitioner: it shares nothing with the runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hloom.hlo.evaluator import evaluate_computation, evaluate_op
from hloom.hlo.ir import HloComputation, HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.sharding import HloSharding
from hloom.hlo.support.value_tree import leaves_of, value_of


def run_on_devices(module: HloModule, arguments: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The results' leaves of each device, for the arguments' leaves of each device."""
    assert len(arguments) == module.num_partitions, f"{len(arguments)} devices, {module.num_partitions} partitions"
    given = []
    for leaves in arguments:
        source = iter([np.asarray(a) for a in leaves])
        given.append([value_of(p.shape, source) for p in module.entry.parameters])
    return [list(leaves_of(value)) for value in _run(module.entry, given)]


def cut(array: Any, sharding: HloSharding, device: int) -> Any:
    """The device's part of an array."""
    return np.asarray(array)[sharding.part(device, np.shape(array))]


def put_together(parts: Sequence[Any], sharding: HloSharding, dimensions: Sequence[int]) -> Any:
    """The whole array; an assertion fails if two devices have different values for the same part."""
    whole = np.zeros(dimensions, parts[0].dtype)
    written = np.zeros(dimensions, bool)
    for device, part in enumerate(parts):
        place = sharding.part(device, dimensions)
        assert part.shape == whole[place].shape, f"device {device} has {part.shape}, not {whole[place].shape}"
        if written[place].all() and part.size:
            assert part.tobytes() == np.ascontiguousarray(whole[place]).tobytes(), f"device {device} differs"
        whole[place], written[place] = part, True
    assert written.all(), "no device has some part"
    return whole


def _run(computation: HloComputation, arguments: list[list[Any]]) -> list[Any]:
    devices = range(len(arguments))
    values: dict[HloInstruction, list[Any]] = {}
    for number, parameter in enumerate(computation.parameters):
        values[parameter] = [arguments[k][number] for k in devices]
    for i in computation.instructions:
        if i.opcode is not Opcode.PARAMETER:
            values[i] = _value(i, [[values[o][k] for o in i.operands] for k in devices])
    return values[computation.root]


def _value(i: HloInstruction, operands: list[list[Any]]) -> list[Any]:
    match i.opcode:
        case Opcode.PARTITION_ID:
            return [np.array(k, np.uint32) for k in range(len(operands))]
        case Opcode.CALL:
            return _run(i.attributes.to_apply, operands)
        case Opcode.WHILE:
            state = [each[0] for each in operands]
            while True:
                tests = {bool(t) for t in _run(i.attributes.condition, [[s] for s in state])}
                assert len(tests) == 1, "devices do not agree whether the loop goes on"
                if tests == {False}:
                    return state
                state = _run(i.attributes.body, [[s] for s in state])
        case Opcode.CONDITIONAL:
            chosen = [_branch(i, each[0]) for each in operands]
            if len(set(chosen)) == 1:
                branch = i.attributes.branch_computations[chosen[0]]
                return _run(branch, [[each[1 + chosen[0]]] for each in operands])
            branches = i.attributes.branch_computations
            return [evaluate_computation(branches[c], [each[1 + c]]) for c, each in zip(chosen, operands)]
        case Opcode.COLLECTIVE_PERMUTE:
            found = [np.zeros_like(each[0]) for each in operands]
            for source, target in i.attributes.source_target_pairs:
                found[target] = operands[source][0]
            return found
        case Opcode.ALL_REDUCE if len(i.operands) > 1:
            each = [replace(i, operands=(o,), shape=o.shape) for o in i.operands]
            results = [_value(one, [[given[k]] for given in operands]) for k, one in enumerate(each)]
            return list(zip(*results, strict=True))
        case _ if i.opcode in _OF_GROUPS:
            found: list[Any] = [None] * len(operands)
            for group in i.attributes.replica_groups.groups:
                for place, device in enumerate(group):
                    found[device] = _OF_GROUPS[i.opcode](i, [operands[d][0] for d in group], place)
            return found
    return [evaluate_op(i.opcode, each, i.attributes, i.shape) for each in operands]


def _branch(i: HloInstruction, index: Any) -> int:
    last = len(i.attributes.branch_computations) - 1
    if index.dtype == bool:
        return 0 if index else 1
    return int(index) if 0 <= index <= last else last


def _reduced(i: HloInstruction, given: list[Any]) -> Any:
    total = given[0]
    opcode = i.attributes.to_apply.root.opcode
    scalar = i.attributes.to_apply.root.shape
    for each in given[1:]:
        total = evaluate_op(opcode, [total, each], i.attributes.to_apply.root.attributes,
                            replace(i.operands[0].shape, element_type=scalar.element_type))  # fmt: skip
    return total


def _all_reduce(i: HloInstruction, given: list[Any], place: int) -> Any:
    return _reduced(i, given)


def _reduce_scatter(i: HloInstruction, given: list[Any], place: int) -> Any:
    return np.split(_reduced(i, given), len(given), i.attributes.dimension)[place]


def _all_gather(i: HloInstruction, given: list[Any], place: int) -> Any:
    return np.concatenate(given, i.attributes.dimension)


def _all_to_all(i: HloInstruction, given: list[Any], place: int) -> Any:
    d = i.attributes.dimension
    return np.concatenate([np.split(x, len(given), d)[place] for x in given], d)


def _broadcast(i: HloInstruction, given: list[Any], place: int) -> Any:
    return given[0]


_OF_GROUPS = {
    Opcode.ALL_REDUCE: _all_reduce,
    Opcode.REDUCE_SCATTER: _reduce_scatter,
    Opcode.ALL_GATHER: _all_gather,
    Opcode.ALL_TO_ALL: _all_to_all,
    Opcode.COLLECTIVE_BROADCAST: _broadcast,
}
