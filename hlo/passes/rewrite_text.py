"""A rule's application as text for people: the instruction that it replaced, and the new ones.

    add_negated in main
      - %r = f32[4]{0} add(%ex, %y)
      + %subtract~1 = f32[4]{0} subtract(%y, %x)

New instructions have no names yet: they are shown with their opcode and a number. Of a called computation only the
lines that differ are shown.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from ..ir import HloComputation, HloInstruction
from ..text.names import Names
from ..text.printer import computation_texts, operation_text

_ELIDE_OVER = 8
"""The most elements of a constant that is shown in full."""
_MOST_LINES = 40


class ShownNames(Names):
    """Names as they are; `opcode~N` for an instruction without one."""

    def __init__(self) -> None:
        super().__init__(())
        self._shown: dict[HloInstruction, str] = {}

    def of_instruction(self, instruction: HloInstruction) -> str:
        if instruction.name:
            return instruction.name
        return self._shown.setdefault(instruction, f"{instruction.opcode.value}~{len(self._shown) + 1}")

    def of_computation(self, computation: HloComputation) -> str:
        return computation.name or "computation"


def application_text(rule: str, computation: str, before: HloInstruction, after: HloInstruction) -> str:
    """See the module's docstring. Ends without a newline."""
    names = ShownNames()
    known = _reachable(before)
    lines = [f"{rule} in {computation}", f"  - {_line(before, names)}"]
    added = [i for i in _order(after, known) if i is not before]
    lines += [f"  + {_line(i, names)}" for i in added[:_MOST_LINES]]
    if len(added) > _MOST_LINES:
        lines.append(f"  + ... {len(added) - _MOST_LINES} more")
    if after in known or not added:
        lines.append(f"  = %{names.of_instruction(after)}")
    if after.opcode is before.opcode:
        lines += [f"    {line}" for line in _called_difference(before, after)]
    return "\n".join(lines)


def _line(instruction: HloInstruction, names: Names) -> str:
    return f"%{names.of_instruction(instruction)} = {operation_text(instruction, names, _ELIDE_OVER)}"


def _reachable(root: HloInstruction) -> set[HloInstruction]:
    found, stack = {root}, [root]
    while stack:
        for operand in stack.pop().operands:
            if operand not in found:
                found.add(operand)
                stack.append(operand)
    return found


def _order(root: HloInstruction, known: set[HloInstruction]) -> list[HloInstruction]:
    """The instructions that `root` needs and that are not `known`, operands first."""
    order: dict[HloInstruction, None] = {}
    stack = [] if root in known else [root]
    while stack:
        node = stack[-1]
        missing = [o for o in node.operands if o not in order and o not in known]
        if missing:
            stack += reversed(missing)
        else:
            stack.pop()
            order[node] = None
    return list(order)


def _called_difference(before: HloInstruction, after: HloInstruction) -> Iterator[str]:
    """The changed lines of computations that both call, one after the other."""
    for old, new in zip(before.called_computations(), after.called_computations()):
        if old is not new:
            texts = (computation_texts([c], elide_over=_ELIDE_OVER) for c in (old, new))
            a, b = (text.splitlines() for (text,) in texts)
            changed = [line for line in difflib.ndiff(a, b) if line[0] in "-+"]
            yield f"in {old.name}:"
            yield from changed[:_MOST_LINES]
            if len(changed) > _MOST_LINES:
                yield f"... {len(changed) - _MOST_LINES} more lines"
