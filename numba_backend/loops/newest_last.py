"""A transform: a sum ends with the element that the iteration before has stored, which is kept in a variable.

                                                        at0 = -1
                                                        newest0 = float32(0)
    for t in range(n):                                  for t in range(n):
        k = n - 1 - t                                       k = n - 1 - t
        acc = 0                                             acc = 0
                                                            rest0 = select((k + 1 < n) & (k + 1 == at0), k + 1, k)
        for i in range(k + 1, n):                   ->      for i in range(n - 1, rest0, -1):
            acc = reduce_add(acc, x[i] * y[i])                  acc = reduce_add(acc, x[i] * y[i])
                                                            if rest0 > k:
                                                                acc = reduce_add(acc, x[rest0] * newest0)
        y[k] = b[k] - acc                                   newest0 = b[k] - acc
                                                            y[k] = newest0
                                                            at0 = k

Substitution adds up what it has already found. Each step waits for the element that was stored last, with all terms
that are added after it; and where it is loaded with its neighbours, as a vector, until the store has reached the cache.
If it comes last, the processor computes the other terms meanwhile; and it need not be loaded. A sum of floats may be
made in any order. A variable says where the newest element is, so that nothing need be known of the indices: they only
tell for which sums this is of use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ...hlo.support.records import dataclass
from .affine import Affine, Indices, constant_difference
from .expressions import ZERO, Binary, Call, Expr, Load, Name, Number, call, is_number, minus
from .rewrite import rewritten, with_names
from .statements import (
    Assign,
    Augment,
    Block,
    For,
    If,
    Statement,
    Store,
    While,
    expressions_of,
    inner_blocks,
    walk,
    with_blocks,
    with_values,
)
from .straight_lines import Ranges, assigned, is_straight, with_changed_loops
from .typing import is_float, pointee


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum over elements that are neighbours in an array."""

    loop: For
    load: Load
    is_first: bool
    """The newest element is the first one; otherwise the last one."""
    ends: Sequence[Affine]
    """The index of the element at that end: one for each number that the loop may start or end at."""


def newest_last(block: Block, sizes: Mapping[str, int], fresh: Callable[[str], str]) -> Block:
    """The statements with such sums changed. `sizes`: the numbers that arguments stand for; `fresh`: a new name like a
    given one."""
    carried: set[str] = set()

    def change(loop: For, ranges: Ranges, inner: Callable[[], Block]) -> Block:
        loop = replace(loop, body=inner())
        stores = [s for s in loop.body if isinstance(s, Store)]
        has_loops = any(isinstance(s, For) for s in walk(loop.body))
        if loop.kind != "range" or loop.step != 1 or not stores or not has_loops:
            return [loop]
        if not carried:
            carried.update(_read_first(block, set()))
        for store in stores:
            found = _sums_with_newest(loop, store, Indices(sizes, ranges, {}), carried)
            if found and _is_alone(store, loop.body):
                return _changed(loop, store, found, fresh)
        return [loop]

    return with_changed_loops(block, sizes, change)


def _is_alone(store: Store, block: Block) -> bool:
    """True if nothing else in a block may store to the array."""
    name = store.pointer.name
    for statement in walk(block):
        if isinstance(statement, Store) and statement is not store and statement.pointer.name == name:
            return False
        for whole in expressions_of(statement):
            loads = sum(load.pointer.name == name for load in whole.loads)
            if whole is not store.pointer and whole.names.count(name) > loads:
                return False
    return True


def _sums_with_newest(loop: For, store: Store, indices: Indices, carried: set[str]) -> list[_Sum]:
    """The sums in a loop's body that start or end at the element which a store in the body has stored in the iteration
    before."""
    indices.known.update(dict.fromkeys(_assigned(loop.body)))
    sums: list[_Sum] = []
    for statement in loop.body:
        if isinstance(statement, Assign):
            values = [indices.of(value) for value in statement.values]
            indices.known.update((t.name, value) for t, value in zip(statement.targets, values, strict=True))
        elif statement is store:
            break
        elif not isinstance(statement, Store):
            for inner in _sums(statement, carried):
                sums += _with_ends(inner, store.pointer.name, indices)
            indices.known.update(dict.fromkeys(_assigned([statement])))
    stored = indices.of(store.index)
    if stored is None:
        return []
    found: dict[int, _Sum] = {}
    for each in sums:
        later = [_sum(end, {}, end.get(loop.variable.name, 0)) for end in each.ends]  # in the next iteration
        if any(constant_difference(stored, end) == 0 for end in later):
            found.setdefault(id(each.loop), each)
    return list(found.values())


def _sums(statement: Statement, carried: set[str]) -> Iterator[For]:
    """The sums in a statement, outside of further loops: terms of floats in any order, and nothing else that one
    iteration leaves to another."""
    if not isinstance(statement, For):
        for inner in inner_blocks(statement):
            for each in inner:
                yield from _sums(each, carried)
        return
    if statement.kind != "range" or statement.step != 1 or not is_straight(statement.body):
        return
    totals: list[str] = []
    for s in statement.body:
        if isinstance(s, Store):
            return
        if not isinstance(s, Assign):
            continue
        match s:
            case Assign(targets=(total,), values=(Call(function="reduce_add", arguments=(Name(name=name), term)),)) if (
                name == total.name and is_float(total.type) and name not in term.names
            ):
                totals.append(name)
            case _ if not carried.isdisjoint(t.name for t in s.targets):
                return
    reads = [name for s in statement.body for whole in expressions_of(s) for name in whole.names]
    if len(totals) == 1 and reads.count(totals[0]) == 1:
        yield statement


def _with_ends(loop: For, array: str, indices: Indices) -> Iterator[_Sum]:
    """The loads of neighbours in an array, from both ends of a sum."""
    variable, own = loop.variable.name, assigned(loop.body)
    loads = [load for s in loop.body for whole in expressions_of(s) for load in whole.loads]
    for load in loads:
        index = indices.of(load.index)
        if load.pointer.name != array or index is None or index.get(variable) != 1:
            continue
        if load.index.loads or not own.isdisjoint(load.index.names):
            continue
        rest = {name: factor for name, factor in index.items() if name != variable}
        if loop.start is not None:
            yield _Sum(loop, load, True, [_sum(rest, end, 0) for end in _choices(loop.start, indices)])
        yield _Sum(loop, load, False, [_sum(rest, end, -1) for end in _choices(loop.stop, indices)])


def _sum(a: Affine, b: Affine, constant: int) -> Affine:
    return {name: a.get(name, 0) + b.get(name, 0) + (0 if name else constant) for name in {*a, *b, ""}}


def _choices(e: Expr, indices: Indices) -> list[Affine]:
    """The sums that an expression may be equal to, if it is one of them or the larger or smaller one of some."""
    match e:
        case Call(function="minimum" | "maximum", arguments=arguments):
            return [choice for argument in arguments for choice in _choices(argument, indices)]
        case Binary(op="+", left=left, right=Number(value=value)):
            return [_sum(choice, {}, int(value)) for choice in _choices(left, indices)]
    known = indices.of(e)
    return [] if known is None else [known]


def _changed(loop: For, store: Store, sums: Sequence[_Sum], fresh: Callable[[str], str]) -> Block:
    """The loop with `newest` and `at`, the last value that was stored, and its index."""
    kind = pointee(store.pointer.type)
    newest, at = Name(fresh("newest"), kind), Name(fresh("at"))
    new = {id(each.loop): _with_newest(each, newest, at, Name(fresh("rest"))) for each in sums}

    def changed(block: Block) -> Block:
        result: Block = []
        for statement in block:
            if id(statement) in new:
                result += new[id(statement)]
            elif statement is store:
                value = store.value if store.value.type == kind else Call(kind, (store.value,))
                result += [Assign((newest,), (value,)), replace(store, value=newest), Assign((at,), (store.index,))]
            else:
                result.append(with_blocks(statement, changed))
        return result

    before = [Assign((at,), (Number(-1),)), Assign((newest,), (call(kind, 0),))]
    return [*before, replace(loop, body=changed(loop.body))]


def _with_newest(each: _Sum, newest: Name, at: Name, rest: Name) -> Block:
    """A sum without the term of the newest element, and this term, if the variables have the element."""
    loop, variable = each.loop, each.loop.variable
    start = loop.start or ZERO
    end = _before(start) if each.is_first else loop.stop
    last = start if each.is_first else _before(loop.stop)
    is_newest = Binary("&", Binary("<", start, loop.stop), with_names(each.load.index, {variable.name: last}).eq(at))

    def element(e: Expr) -> Expr | None:
        return newest if isinstance(e, Load) and e.text == each.load.text else None

    def at_last(e: Expr) -> Expr:
        return with_names(rewritten(e, element), {variable.name: rest})

    term: Block = [with_values(s, at_last) for s in loop.body]
    if each.is_first:
        most = replace(loop, start=_before(loop.stop), stop=rest, step=-1)
    else:
        most = replace(loop, stop=rest)
    return [
        Assign((rest,), (call("select", is_newest, last, end),)),
        most,
        If([(Binary(">" if each.is_first else "<", rest, end), term)]),
    ]


def _before(e: Expr) -> Expr:
    """The index before this one."""
    if isinstance(e, Binary) and e.op == "+" and is_number(e.right, 1):
        return e.left
    return minus(e, Number(1))


def _read_first(block: Block, known: set[str]) -> Iterator[str]:
    """The names that may be read before the block that reads them has assigned to them, as a variable that an
    iteration leaves to the next one, or a loop to what follows it."""
    for statement in block:
        before = known - set(_assigned(statement.body)) if isinstance(statement, While) else known
        for whole in expressions_of(statement):
            yield from (name for name in whole.names if name not in before)
        for inner in inner_blocks(statement):
            changed = set(_assigned(inner))
            yield from _read_first(inner, known - changed)
            known -= changed
        if isinstance(statement, Assign):
            known.update(target.name for target in statement.targets)


def _assigned(block: Block) -> Iterator[str]:
    for statement in walk(block):
        if isinstance(statement, Assign):
            yield from (target.name for target in statement.targets)
        elif isinstance(statement, Augment):
            yield statement.target.name
