"""Cutouts: a part of a program as a module. Its parameters are the values that the part is computed from.

A cutout is small enough to be evaluated alone. `passes/rule_check.py` and `bisection/` use it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from .analyses.trip_count import known_trip_count
from .builder import make_computation, make_module, make_parameter
from .effects import has_side_effect
from .ir import HloComputation, HloInstruction, HloModule
from .opcode import Opcode
from .shape import Shape


def cut_out(root: HloInstruction, inputs: Sequence[HloInstruction], name: str = "cutout") -> HloModule:
    """The module that computes `root` from `inputs`, which become its parameters, in this order.

    Every path from `root` to a parameter of the program must contain one of `inputs`. Names are kept.
    """
    parameters = [make_parameter(n, i.shape, i.name) for n, i in enumerate(inputs)]
    copied = copy_on(root, dict(zip(inputs, parameters, strict=True)))
    computation = make_computation("main", copied, parameters)
    assert len(computation.parameters) == len(inputs), f"{root} is also computed from parameters that are no inputs"
    return make_module(name, computation)


def copy_on(root: HloInstruction, replaced: Mapping[HloInstruction, HloInstruction]) -> HloInstruction:
    """`root` on the replacements of the instructions in `replaced`; instructions that do not depend on them are not
    copied."""
    copies = dict(replaced)
    stack = [root]
    while stack:
        node = stack[-1]
        missing = [o for o in node.operands if o not in copies]
        if node in copies:
            stack.pop()
        elif missing:
            stack += missing
        else:
            copies[stack.pop()] = node.with_operands(tuple([copies[o] for o in node.operands]))
    return copies[root]


def frontier(roots: Iterable[HloInstruction], inside: Container[HloInstruction]) -> tuple[HloInstruction, ...]:
    """The values that `roots` and the instructions `inside` are computed from: the inputs of a cutout. An instruction
    without operands that is not a parameter (a constant, an iota) belongs to the cutout."""
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
"""With this `inside`, only parameters are inputs."""


def within(root: HloInstruction, depth: int) -> set[HloInstruction]:
    """`root` and the instructions that it is computed from, up to `depth` operands away."""
    found, level = {root}, [root]
    for _ in range(depth):
        level = [o for o in dict.fromkeys(o for i in level for o in i.operands) if o not in found]
        found.update(level)
    return found


def is_tame(module: HloModule, most_elements: int, most_steps: int) -> bool:
    """True for a module that the evaluator runs quickly, and twice with the same result: small arrays, loops with a
    known, small trip count, no side effects, no tokens among its parameters."""
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
    """How many instructions of called computations a run evaluates; more than `most` if a trip count is unknown."""
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
