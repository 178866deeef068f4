"""Keep in a variable what a loop stores and loads again in the next iteration, at indices that are no sums.

    for j in range(a, b):                                      if a < b:
        y[clamp(j)] = f(y[clamp(j - 1)], x[j])     ->              carried0 = y[clamp(a - 1)]
                                                                   for j in range(a, b):
                                                                       kept0 = f(carried0, x[j])
                                                                       y[clamp(j)] = kept0
                                                                       carried0 = kept0

A load finds what the only store to its array in the loop has stored in the iteration before, if its index is the
store's with a counter less by one: the same expression, whatever that is. So the indices may be clamped, and the ends
of the loop unknown; carried_loads.py has the rule for sums of counters, with several stores. The first iteration reads
the element from the array.
"""

from __future__ import annotations

from collections.abc import Callable

from ...hlo.support.records import dataclass
from .expressions import ZERO, Binary, Call, Expr, Load, Name, Number
from .rewrite import rewritten, with_names
from .statements import Assign, Block, For, If, Store, expressions_of, with_values
from .straight_lines import FromOutside
from .typing import pointee


@dataclass(frozen=True, slots=True)
class _Load:
    position: int
    load: Load
    index: Expr | None
    """In the loop's counter, and in names from outside; None for other indices."""


def with_last_stored(loop: For, fresh: Callable[[str], str]) -> If | None:
    """A loop of straight-line code with step 1, changed; None if it has no such load. `fresh`: a new name like a given
    one."""
    loads, stores = _accesses(loop)
    for array, ((position, store, index), *more) in stores.items():
        if more or index is None:
            continue
        wanted = _after(index, loop.variable, -1).text
        if wanted == _after(index, loop.variable, 0).text:
            continue  # the same element in each iteration
        found = [
            load for load in loads.get(array, ())
            if load.position <= position and load.index is not None
            and _after(load.index, loop.variable, 0).text == wanted
        ]  # fmt: skip
        if found:
            return _changed(loop, position, store, found, fresh)
    return None


def _accesses(loop: For) -> tuple[dict[str, list[_Load]], dict[str, list[tuple[int, Store, Expr | None]]]]:
    values = FromOutside(loop.body)
    loads: dict[str, list[_Load]] = {}
    stores: dict[str, list[tuple[int, Store, Expr | None]]] = {}
    for position, statement in enumerate(loop.body):
        for whole in expressions_of(statement):
            for load in whole.loads:
                loads.setdefault(load.pointer.name, []).append(_Load(position, load, values.of(load.index)))
        if isinstance(statement, Store):
            stores.setdefault(statement.pointer.name, []).append((position, statement, values.of(statement.index)))
        elif isinstance(statement, Assign):
            values.assign(statement)
    return loads, stores


def _changed(loop: For, at: int, store: Store, loads: list[_Load], fresh: Callable[[str], str]) -> If:
    kind, start = pointee(store.pointer.type), loop.start or ZERO
    carried, kept = Name(fresh("carried"), kind), Name(fresh("kept"), kind)
    body: Block = []
    for position, statement in enumerate(loop.body):
        texts = {each.load.text for each in loads if each.position == position}

        def element(e: Expr, texts: set[str] = texts) -> Expr | None:
            return carried if isinstance(e, Load) and e.text in texts else None

        new = with_values(statement, lambda value, element=element: rewritten(value, element))  # type: ignore[misc]
        if position == at:
            assert isinstance(new, Store)
            value = new.value if new.value.type == kind else Call(kind, (new.value,))
            body += [Assign((kept,), (value,)), Store(new.pointer, new.index, kept), Assign((carried,), (kept,))]
        else:
            body.append(new)
    first = loads[0]
    assert first.index is not None
    index = with_names(first.index, {loop.variable.name: start})
    return If([(Binary("<", start, loop.stop), [
        Assign((carried,), (Load(first.load.pointer, index),)),
        For(loop.variable, loop.start, loop.stop, loop.step, body, loop.kind),
    ])])  # fmt: skip


def _after(e: Expr, counter: Name, iterations: int) -> Expr:
    """An index so many iterations later. Sums of the counter and numbers are written in one way, those of indices and
    those that wrap around: they are equal modulo 2**64."""

    def change(part: Expr) -> Expr | None:
        factor, constant = _sum(part, counter) or (0, 0)
        return Call("sum", (Number(factor), counter, Number(constant + factor * iterations))) if factor else None

    return rewritten(e, change)


def _sum(e: Expr, counter: Name) -> tuple[int, int] | None:
    """The factor of the counter, and the number that is added to it; None for other expressions."""
    match e:
        case Number(value=value) if e.type == "int64":
            return 0, int(value)
        case Name(name=name) if name == counter.name:
            return 1, 0
        case Call(function="int64", arguments=(Number(value=int(value)),)):
            return 0, int(value)
        case Call(function="int64", arguments=(value,)) if value.type == "int64":
            return _sum(value, counter)
        case (
            Binary(op="+" | "-" as op, left=left, right=right)
            | Call(function="add" | "subtract" as op, arguments=(left, right))
        ) if e.type == "int64":
            a, b = _sum(left, counter), _sum(right, counter)
            if a is None or b is None:
                return None
            sign = 1 if op in ("+", "add") else -1
            return a[0] + sign * b[0], a[1] + sign * b[1]
    return None
