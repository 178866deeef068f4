"""Cutouts: a part of a program as a module, whose parameters are the values that the part is computed from.

A cutout is small enough to evaluate by itself. `passes/rule_check.py` and `bisect.py` need it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

from .analyses.trip_count import known_trip_count
from .builder import make_computation, make_module, make_parameter
from .effects import has_side_effect
from .ir import HloComputation, HloInstruction, HloModule
from .opcode import Opcode
from .shape import Shape


def cut_out(root: HloInstruction, inputs: Sequence[HloInstruction], name: str = "cutout") -> HloModule:
    """The module that computes `root` from `inputs`, which are its parameters, in this order.

    All parameters of the program that `root` needs must be `inputs`, or lie behind one. Names are kept.
    """
    parameters = [make_parameter(n, i.shape, i.name) for n, i in enumerate(inputs)]
    copies = dict(zip(inputs, parameters, strict=True))
    stack = [root]
    while stack:
        node = stack[-1]
        missing = [o for o in node.operands if o not in copies]
        if node in copies:
            stack.pop()
        elif missing:
            stack += missing
        else:
            assert node.opcode is not Opcode.PARAMETER, f"{node} is no input"
            copies[stack.pop()] = replace(node, operands=tuple([copies[o] for o in node.operands]))
    return make_module(name, make_computation("main", copies[root], parameters))


def frontier(roots: Iterable[HloInstruction], inside: Container[HloInstruction]) -> tuple[HloInstruction, ...]:
    """What `roots`, with all that is `inside`, are computed from: the inputs of a cutout. What has no operands and is
    no parameter (constants, iotas) belongs to the cutout."""
    found: dict[HloInstruction, None] = {}
    seen: set[HloInstruction] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.opcode is Opcode.PARAMETER or (node.operands and node not in inside):
            found[node] = None
        else:
            stack.extend(reversed(node.operands))
    return tuple(found)


class _Everything:
    def __contains__(self, item: object) -> bool:
        return True


EVERYTHING: Container[HloInstruction] = _Everything()
"""With this `inside`, the inputs are parameters alone."""


def within(root: HloInstruction, depth: int) -> set[HloInstruction]:
    """`root` and what it is computed from in up to `depth` steps."""
    found, level = {root}, [root]
    for _ in range(depth):
        level = [o for o in dict.fromkeys(o for i in level for o in i.operands) if o not in found]
        found.update(level)
    return found


def is_tame(module: HloModule, most_elements: int, most_steps: int) -> bool:
    """True for a module that the evaluator runs soon, and twice with the same result: small arrays, loops that run a
    known, small number of times, no side effects, no tokens among its parameters."""
    if any(_has_token(parameter.shape) for parameter in module.entry.parameters):
        return False
    instructions = list(module.instructions())
    if any(has_side_effect(i) or i.opcode in _UNKNOWN for i in instructions):
        return False
    if sum(leaf.num_elements for i in instructions for leaf in i.shape.leaves()) > most_elements:
        return False
    return _steps(module.entry, most_steps) <= most_steps


_UNKNOWN = frozenset({Opcode.CUSTOM_CALL, Opcode.RNG})


def _has_token(shape: Shape) -> bool:
    return shape.is_token or (shape.is_tuple and any(map(_has_token, shape.elements)))


def _steps(computation: HloComputation, most: int) -> int:
    """How many instructions a run evaluates in loops, or more than `most`."""
    count = 0
    for caller in computation.callers:
        inner = sum(1 + len(c.instructions) + _steps(c, most) for c in caller.called_computations())
        if caller.opcode is Opcode.WHILE:
            trips = known_trip_count(caller)
            if trips is None:
                return most + 1
            inner *= trips
        count += inner
    return count
