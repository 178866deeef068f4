"""Checks one application of a rule: evaluates the instruction before and its replacement on random inputs.

Both are cut out of the program with the instructions that they are computed from, up to `DEPTH` steps back, which is
more than any rule inspects. A cutout that is too large, has side effects, or may loop for long is not checked.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ..comparing import compare, random_array
from ..cutout import cut_out, frontier, is_tame, within
from ..errors import HloError, UnsupportedError
from ..evaluator import evaluate
from ..ir import HloInstruction, HloModule
from ..opcode import Opcode
from ..ops.collective import CollectiveBroadcastAttributes
from .patterns import reducer_opcode

if TYPE_CHECKING:
    from .rewriter import Application

DEPTH = 10
MOST_INSTRUCTIONS = 400
MOST_ELEMENTS = 1 << 18
MOST_STEPS = 5000
SPECIAL = (0.0, 1.0, 1.0, 1.0, 1.0, 0.3)
"""There is one run for each: the fraction of the floats that are NaN, infinities and zeros."""

_RANDOM_INPUTS_MEAN_NOTHING = frozenset({Opcode.RAGGED_DOT})
"""Their integer operands must be consistent, which random ones are not."""


class RuleCheckError(HloError):
    """A rule replaced an instruction by one that computes another result."""


def check_application(application: Application, where: str = "") -> bool:
    """False if the application was not checked. RuleCheckError, with both programs, if the results differ."""
    modules = before_and_after(application)
    if modules is None:
        return False
    before, after = modules
    name = f"{application.rule} {where}".encode()
    for seed, special in enumerate(SPECIAL if all(map(_keeps_specials, before.instructions())) else (0.0,)):
        generator = np.random.default_rng(zlib.crc32(name) + seed)
        leaves = [leaf for parameter in before.entry.parameters for leaf in parameter.shape.leaves()]
        arguments = [random_array(leaf, generator, special) for leaf in leaves]
        try:
            expected = evaluate(before, *arguments)
        except UnsupportedError:
            return False
        wrong = difference(evaluate(after, *arguments), expected, before)
        if wrong is not None:
            given = "".join(f"\n// {p.name} = {a.tolist()}" for p, a in zip(before.entry.parameters, arguments))
            raise RuleCheckError(
                f"rule {application.rule}{' of ' + where if where else ''} gives another result: {wrong}\n\n"
                f"{application}\n\nbefore:\n{before}\nafter:\n{after}{given}"
            )
    return True


def _keeps_specials(instruction: HloInstruction) -> bool:
    """False if another order, or the lack of padding's zeros, can change which elements are NaN or infinite."""
    if instruction.opcode in (Opcode.REDUCE, Opcode.REDUCE_WINDOW):
        return reducer_opcode(instruction.attributes.to_apply) is not None
    return instruction.opcode is not Opcode.CONVOLUTION


def before_and_after(application: Application) -> tuple[HloModule, HloModule] | None:
    """The instruction and its replacement as modules of the same parameters; None if they cannot be evaluated soon."""
    if application.replacement.effects or not application.is_local:
        return None
    if application.before.opcode in _RANDOM_INPUTS_MEAN_NOTHING:
        return None
    inside = within(application.before, DEPTH)
    edge = frontier((application.before,), inside - _last(application, inside))
    known = inside.union(edge)
    stack, new = [application.after], set[HloInstruction]()
    while stack:
        node = stack.pop()
        if node not in known and node not in new:
            new.add(node)
            stack.extend(node.operands)
        if len(new) + len(inside) > MOST_INSTRUCTIONS:
            return None
    inputs = list(dict.fromkeys((*edge, *frontier((application.after,), (inside | new) - set(edge)))))
    before, after = cut_out(application.before, inputs, "before"), cut_out(application.after, inputs, "after")
    if not (is_tame(before, MOST_ELEMENTS, MOST_STEPS) and is_tame(after, MOST_ELEMENTS, MOST_STEPS)):
        return None
    return None if any(map(_reads_a_device_number, before.instructions())) else (before, after)


def _reads_a_device_number(instruction: HloInstruction) -> bool:
    """True if an operand names a device: there is one, and random numbers name others, which the evaluator refuses."""
    attributes = instruction.attributes
    return isinstance(attributes, CollectiveBroadcastAttributes) and attributes.has_dynamic_root


def _last(application: Application, inside: set[HloInstruction]) -> set[HloInstruction]:
    """The outermost instructions: they become inputs, because their operands are not inside."""
    return {i for i in inside if any(o not in inside for o in i.operands)}


def difference(actual: list[Any], expected: list[Any], module: HloModule) -> str | None:
    """How the results of `module` differ, the sign of zeros included; None if they are equal."""
    for number, (a, e, leaf) in enumerate(zip(actual, expected, module.entry.root.shape.leaves(), strict=True)):
        found = compare(a, e, leaf.element)
        if not found.is_fine:
            return f"result {number}: {found}"
        if leaf.element.is_floating and not leaf.element.is_small:
            zeros = (a == 0) & (e == 0)
            if np.any(np.signbit(a[zeros]) != np.signbit(e[zeros])):
                return f"result {number}: zeros of different sign"
    return None
