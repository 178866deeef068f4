"""Keep in a variable the element that an inner loop updates in each iteration.

    for k in range(a, b):                          if a < b:
        y[i] = f(y[i], y[k])                           kept0 = y[i]
                                         ->            for k in range(a, b):
                                                           kept0 = f(kept0, y[k])
                                                       y[i] = kept0

Programs write sums and extrema in this way: ``y.at[i].set(maximum(y[i], y[k] + x[k]))``. Each iteration then waits for
the store of the one before, and LLVM makes no vectors. LLVM itself keeps such an element only where it knows that no
other access of the loop is to the same one. Here that is known from the ends of the loops (facts.py): k < i, or k > i.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .affine import Affine, difference
from .expressions import Binary, Call, Expr, Load, Name
from .facts import CountedLoop, Ends, Facts, Reader, decided
from .rewrite import rewritten, with_names
from .statements import Assign, Block, For, If, Statement, Store, While, with_values
from .straight_lines import FromOutside, is_straight, loads_of
from .typing import pointee


def with_kept_elements(block: Block, sizes: Mapping[str, int], fresh: Callable[[str], str]) -> Block:
    """The statements with such loops changed. `sizes`: the numbers that arguments stand for; `fresh`: a new name like a
    given one."""
    return _Kept(Facts(sizes), fresh).block(block)


class _Kept(Reader):
    def __init__(self, facts: Facts, fresh: Callable[[str], str]) -> None:
        super().__init__(facts)
        self._fresh = fresh

    def _changed(self, statement: For | While, loop: CountedLoop, ends: Ends) -> Statement:
        if not isinstance(statement, For) or not is_straight(statement.body):
            return self.within(statement, loop, ends)
        found = _elements(statement, self._facts.inside(loop, ends))
        return _written(statement, loop, found, self._fresh) if found else statement


class _Uses:
    """The uses of an array in a loop: loads and stores of one element, which is the same in all iterations, and loads
    of others."""

    def __init__(self, pointer: Name, index: Expr, place: Affine) -> None:
        self.pointer, self.index, self.place = pointer, index, place
        self.loads: set[tuple[int, str]] = set()
        """Positions in the loop's body, and the texts of loads of the element there."""


def _elements(loop: For, facts: Facts) -> dict[str, _Uses]:
    """The elements that the loop loads and stores in each iteration, by array. `facts`: of its iterations."""
    found = _stored(loop, facts)
    values = FromOutside(loop.body)
    for position, statement in enumerate(loop.body):
        for load in loads_of(statement) if found else ():
            uses = found.get(load.pointer.name)
            if uses is None:
                continue
            index = values.of(load.index)
            if index is not None and index.text == uses.index.text:
                uses.loads.add((position, load.text))
                continue
            place = facts.of(load.index)
            if place is None or not decided("!=", facts.bounds(difference(place, uses.place))):
                del found[load.pointer.name]
        _assign(statement, values, facts)
    return {array: uses for array, uses in found.items() if uses.loads}


def _stored(loop: For, facts: Facts) -> dict[str, _Uses]:
    """The arrays that the loop stores to, at one index that does not change."""
    values = FromOutside(loop.body)
    found: dict[str, _Uses | None] = {}
    for statement in loop.body:
        if isinstance(statement, Store):
            name, index = statement.pointer.name, values.of(statement.index)
            place = None if index is None or index.reads(loop.variable.name) else facts.of(index)
            known = found.get(name)
            if index is None or place is None or (name in found and (known is None or known.index.text != index.text)):
                found[name] = None
            elif known is None:
                found[name] = _Uses(statement.pointer, index, place)
        elif isinstance(statement, Assign):
            values.assign(statement)
    return {name: uses for name, uses in found.items() if uses is not None}


def _assign(statement: Statement, values: FromOutside, facts: Facts) -> None:
    if isinstance(statement, Assign):
        values.assign(statement)
        if len(statement.targets) == 1:
            facts.assign(statement.targets[0], statement.values[0])
        else:
            facts.forget(statement)


def _written(statement: For, loop: CountedLoop, found: Mapping[str, _Uses], fresh: Callable[[str], str]) -> If:
    kept = {array: Name(fresh("kept"), pointee(uses.pointer.type)) for array, uses in found.items()}
    texts = {place: kept[array] for array, uses in found.items() for place in uses.loads}
    body: Block = []
    same: dict[str, Expr] = {}
    """The variables that got a kept element, which has not changed since."""
    for position, old in enumerate(statement.body):

        def changed(value: Expr, position: int = position, same: Mapping[str, Expr] = same) -> Expr:
            loaded = rewritten(value, lambda e: texts.get((position, e.text)) if isinstance(e, Load) else None)
            return with_names(loaded, same)

        new = with_values(old, changed)
        if isinstance(new, Store) and new.pointer.name in kept:
            variable = kept[new.pointer.name]
            value = new.value if new.value.type == variable.type else Call(variable.type, (new.value,))
            same = {name: other for name, other in same.items() if other is not variable}
            body.append(Assign((variable,), (value,)))
            continue
        body.append(new)
        if isinstance(new, Assign):
            same = {name: other for name, other in same.items() if all(name != target.name for target in new.targets)}
            (target, *others), (value, *_) = new.targets, new.values
            if not others and any(value is variable for variable in kept.values()) and value.type == target.type:
                same[target.name] = value
    around = For(statement.variable, statement.start, statement.stop, statement.step, body, statement.kind)
    before: Block = [Assign((kept[a],), (Load(uses.pointer, uses.index),)) for a, uses in found.items()]
    after: Block = [Store(uses.pointer, uses.index, kept[a]) for a, uses in found.items()]
    return If([(Binary("<", loop.start, loop.stop), [*before, around, *after])])
