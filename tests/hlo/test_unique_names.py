"""Names of instructions: unique in a module, given ones are kept, and new ones do not make copies of what was there."""

from __future__ import annotations

import random

from hloom.hlo.builder import (
    make_computation,
    make_instruction,
    make_module,
    make_parameter,
    make_tuple,
    with_unique_names,
)
from hloom.hlo.ir import HloComputation, HloInstruction, HloModule

from hloom import hlo

SHAPE = hlo.Shape.array(hlo.ElementType.F32, (3,))


def _negate(x: HloInstruction, name: str = "") -> HloInstruction:
    return make_instruction(hlo.Opcode.NEGATE, (x,), name=name)


def test_a_new_instruction_before_old_ones_renames_none_of_them() -> None:
    x = make_parameter(0, SHAPE, "x")
    chain = [_negate(x, "negate")]
    for k in range(1, 20):
        chain.append(_negate(chain[-1], f"negate.{k}"))
    new = _negate(x)
    root = make_tuple([new, chain[-1]])
    entry = HloComputation("main", (x, new, *chain, root), root)
    named = with_unique_names(HloModule("m", entry), is_own=lambda i: not i.name)
    assert named.entry.instructions == (x, new, *chain, root)  # the same objects
    assert new.name == "negate.20"


def test_free_numbers_between_others_are_found() -> None:
    x = make_parameter(0, SHAPE, "x")
    taken = [_negate(x, name) for name in ("negate", "negate.1", "negate.2", "negate.4", "negate.9")]
    new = [_negate(x) for _ in range(12)]
    module = make_module("m", make_computation("main", make_tuple([*taken, *new]), (x,)))
    names = [i.name for i in module.entry.instructions]
    assert len(set(names)) == len(names)
    assert names[1:6] == [i.name for i in taken]


def test_random_names() -> None:
    """The first that has a name keeps it and stays the same object; the others get names of their own."""
    rng = random.Random(3)
    for _ in range(200):
        x = make_parameter(0, SHAPE, "x")
        chain = [x]
        for _ in range(rng.randrange(1, 30)):
            name = rng.choice(["", "", "negate", f"negate.{rng.randrange(12)}", f"a.{rng.randrange(3)}", "x"])
            chain.append(_negate(rng.choice(chain), name))
        entry = HloComputation("main", tuple(chain), chain[-1])
        given = [i.name for i in chain]
        in_place = rng.random() < 0.5
        named = with_unique_names(HloModule("m", entry), is_own=(lambda i: bool(i.operands)) if in_place else None)
        found = named.entry.instructions
        names = [i.name for i in found]
        assert len(set(names)) == len(names) and "" not in names
        for k, name in enumerate(given):
            if name and name not in given[:k]:
                assert names[k] == name
        assert [[chain.index(o) for o in i.operands] for i in chain] == [
            [found.index(o) for o in i.operands] for i in found
        ]
        assert not in_place or found == tuple(chain)
