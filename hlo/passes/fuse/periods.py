"""Repeated stretches of a long program, such as the steps of an integrator that a Python loop unrolls.

A kernel has a limit, so a long chain is cut. Cut anywhere, each piece is another kernel, which must be compiled; cut
after whole periods, all pieces are one kernel. `blocks` says where.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from ...analyses.equal_keys import Firsts
from ...ir import HloComputation, HloInstruction
from ...opcode import Opcode
from ...ops import is_elementwise
from .fusible import is_free, resolve

_WINDOW = 8
"""So many equal instructions after one another are a candidate for a period."""
_CANDIDATES = 4
_FEWEST = 3
"""Fewer equal blocks than these are not worth a cut of their own."""


def blocks(computation: HloComputation, members: int) -> dict[HloInstruction, int]:
    """By instruction of a repeated stretch, the number of its block: whole periods, at most `members` instructions.
    Instructions of other stretches are not in it; nor are those of a period that is not elementwise throughout, since
    such instructions cut each period at the same place, or of a program that one kernel can hold."""
    chain = [i for i in computation.instructions if not (is_free(i) or i.opcode is Opcode.PARAMETER)]
    if len(chain) <= _FEWEST * members:
        return {}
    keys = _keys(chain)
    found: dict[HloInstruction, int] = {}
    for period in _periods(keys, members):
        for first, end in _stretches(keys, period):
            stretch = chain[first:end]
            size = members // period * period
            if len(stretch) < _FEWEST * size or not all(is_elementwise(i) for i in stretch[:period]):
                continue
            if found.keys().isdisjoint(stretch):
                before = len(found)
                found.update({i: before + k // size for k, i in enumerate(stretch)})
    return found


def _keys(chain: Sequence[HloInstruction]) -> list[int]:
    """For each instruction a number: the same for elementwise ones that do the same with operands from as far before
    them. Any other instruction has one of its own: to compare their types, which may be long tuples, would cost more
    the longer the program is."""
    place = {i: k for k, i in enumerate(chain)}
    alike: Firsts[int] = Firsts()
    keys = []
    for k, i in enumerate(chain):
        if not is_elementwise(i):
            keys.append(-k - 1)
            continue
        operands: list[Hashable] = []
        for operand in i.operands:
            source, positions = resolve(operand)
            at = place.get(source)
            is_number = source.opcode is Opcode.CONSTANT and source.shape.num_elements == 1
            far: Hashable = source.attributes.literal if is_number else id(source)
            operands.append((far, positions) if at is None else (k - at, positions))
        keys.append(alike.of((i.opcode, i.shape, i.attributes, *operands), k))
    alike.note_others()
    return keys


def _periods(keys: Sequence[int], most: int) -> list[int]:
    """The distances, at most `most`, at which the most stretches of a few instructions come again."""
    last: dict[tuple[int, ...], int] = {}
    counts: Counter[int] = Counter()
    for k in range(len(keys) - _WINDOW + 1):
        window = tuple(keys[k : k + _WINDOW])
        if window in last:
            counts[k - last[window]] += 1
        last[window] = k
    return [period for period, _ in counts.most_common(_CANDIDATES) if period <= most]


def _stretches(keys: Sequence[int], period: int) -> list[tuple[int, int]]:
    """Where each instruction is equal to the one a period before it: (first, end), with the first period."""
    found = []
    first = period
    for k in range(period, len(keys) + 1):
        if k == len(keys) or keys[k] != keys[k - period]:
            if k - first >= period:
                found.append((first - period, k))
            first = k + 1
    return found
