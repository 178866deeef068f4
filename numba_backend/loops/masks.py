"""A transform: restrict sums, extrema and updates of masked elements to the elements that the mask lets through.

    acc0 = c0                                           acc0 = c0
    for i in range(n0):                                 for i in range(minimum(n0, int64(v0))):
        v1 = x[i]                                           v1 = x[i]
        acc0 = reduce_add(acc0, select(int32(i) < v0, v1 * v1, c0))     acc0 = reduce_add(acc0, v1 * v1)

Triangular algorithms are written so: a row of fixed size is masked to its part. Here c0 is known to be zero, so that
adding it changes nothing: a sum that begins as +0 is never -0. A minimum or a maximum takes any number for the hidden
elements with which it begins. The limit is a number that the loop around computes, so only the program of that loop
shows that it does not change inside.

A term that is the same for all hidden elements is added once for all of them, as in a row of a sparse matrix, whose
product is 0 * x[0] there, which may be NaN:

    for i in range(n0):                                 for i in range(maximum(0, v0), minimum(n0, v1)):
        m = (i >= v0) & (i < v1)                            m = (i >= v0) & (i < v1)
        j = select(m, columns[i], 0)                        j = columns[i]
        acc0 = reduce_add(acc0, select(m, a[i], c0) * x[j])     acc0 = reduce_add(acc0, a[i] * x[j])
                                                        if n0 - maximum(minimum(n0, v1) - maximum(0, v0), 0) > 0:
                                                            acc0 = reduce_add(acc0, c0 * x[0] * float32(...))

If the hidden terms are products of zero and elements of an array, both loops are there, until finite.py decides:

    for i in range(n0):                                 if all_finite(x):
        acc0 = reduce_add(acc0,                             for i in range(minimum(n0, v0)):
            select(int32(i) < v0, a[i], c0) * x[i])             acc0 = reduce_add(acc0, a[i] * x[i])
                                                        else:
                                                            ...

A long sum is made in blocks, of which only those with such elements remain:

    for start in range(0, n0, 4096):                    for start in range(v0 - (v0 & 4095), minimum(n0, v1), 4096):
        for i in range(start, minimum(start + 4096, n0)):   ...

A masked update, which stores all other elements as they were, goes over the part that changes:

    for i in range(n0):                                 for i in range(minimum(n0, v0)):
        v1 = y[i]                                           v1 = y[i]
        y[i] = select(int32(i) < v0, v1 + x[i], v1)         y[i] = v1 + x[i]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ...hlo.support.records import dataclass
from .expressions import (
    ZERO,
    Binary,
    Call,
    Expr,
    Load,
    Name,
    Number,
    all_of,
    as_expr,
    call,
    maximum,
    minimum,
    minus,
    plus,
    product_of,
)
from .forward import assigned
from .rewrite import rewritten, with_names
from .split import MIRRORED, conditions
from .statements import Assign, Block, Comment, For, If, Statement, Store, expressions_of, walk, with_blocks
from .typing import is_float

_COUNTERS = ("int32", "int64")


_EXTREMA = ("minimum", "maximum")
_KEYS = ("minimum_key", "maximum_key")


@dataclass(frozen=True)
class _Masked:
    """``target = function(total, select(condition, term, otherwise))``, perhaps with a key of the choice."""

    target: Name
    function: str
    total: Expr
    key: str | None
    condition: Expr
    term: Expr
    otherwise: Expr

    def of(self, value: Expr) -> Expr:
        return value if self.key is None else call(self.key, value)

    def unmasked(self) -> Statement:
        return Assign((self.target,), (call(self.function, self.total, self.of(self.term)),))


@dataclass(frozen=True)
class _Known:
    """Names that do not change: `zeros`, which stand for +0, all `constants`, and `neutral`, +0 or -0."""

    zeros: Collection[str]
    constants: Collection[str]
    neutral: Collection[str]

    def is_nothing(self, masked: _Masked, start: Expr | None) -> bool:
        """True if the hidden elements change nothing in an accumulator that begins as `start`."""
        if not isinstance(masked.otherwise, Name) or start is None:
            return False
        if masked.function == "reduce_add":
            return all(isinstance(e, Name) and e.name in self.zeros for e in (masked.otherwise, start))
        return masked.otherwise.name in self.constants and start.text == masked.of(masked.otherwise).text


def within_masks(
    block: Block, zeros: Collection[str], constants: Collection[str], neutral: Collection[str] = ()
) -> Block:
    """The statements, with loops that only accumulate masked elements cut to where their masks hold. `zeros`: names
    that stand for +0; `constants`: names that never change; `neutral`: names that stand for +0 or -0, for loops over
    blocks. No loop may reach 2**31."""
    if not constants or not any(map(_has_mask, walk(block))):
        return block
    return _within(block, _Known(zeros, constants, neutral))


def _has_mask(statement: Statement) -> bool:
    """True for a statement in which something is chosen."""
    return any("select(" in e.text for e in expressions_of(statement))


def _masked(statement: Statement) -> _Masked | None:
    match statement:
        case Assign(targets=(target,), values=(Call(function=function, arguments=(total, added)),)):
            key = None
            if function in _EXTREMA and isinstance(added, Call) and added.function in _KEYS:
                key, (added,) = added.function, added.arguments
            elif function not in _EXTREMA and function != "reduce_add":
                return None
            if isinstance(added, Call) and added.function == "select":
                return _Masked(target, function, total, key, *added.arguments)
    return None


def _within(block: Block, known: _Known) -> Block:
    result: Block = []
    starts: dict[str, Expr] = {}
    for statement in block:
        parts: Block = [statement]
        in_blocks = _in_blocks(statement, known, starts) if isinstance(statement, For) else None
        if isinstance(statement, For) and in_blocks is None:
            cut = _cut(statement, known, starts)
            parts = [cut] if cut is not statement else [_updated(statement)]
            parts = parts if parts[0] is not statement else _apart(statement)
            parts = parts if parts[0] is not statement else [_while_finite(statement, known, starts)]
        if in_blocks is not None or (isinstance(statement, For) and isinstance(parts[0], If)):
            result += in_blocks or parts
        else:
            result += [with_blocks(part, lambda inner: _within(inner, known)) for part in parts]
        for name in assigned([statement]):
            starts.pop(name, None)
        if isinstance(statement, Assign) and len(statement.targets) == 1:
            starts[statement.targets[0].name] = _start(statement.values[0], starts)
    return result


def _start(value: Expr, starts: Mapping[str, Expr]) -> Expr:
    """The value that a variable starts with; a wider number of the same value is that number."""
    (inner,) = value.arguments if isinstance(value, Call) and value.function == "float64" else (value,)
    return starts.get(inner.name, inner) if isinstance(inner, Name) and is_float(inner.type) else value


def _cut(loop: For, known: _Known, starts: dict[str, Expr]) -> For:
    if loop.step != 1:
        return loop
    sums: dict[str, Expr] = {}
    changing = set(assigned(loop.body)) | {loop.variable.name}
    for statement in loop.body:
        if isinstance(statement, Comment):
            continue
        if mask := _mask(statement, known, starts):
            sums[mask.target.name] = mask.condition
        elif not _is_value(statement):
            return loop
    if not sums or not _are_read_once(loop.body, sums):
        return loop
    (first, *others) = sums.values()
    if any(other.text != first.text for other in others):
        return loop
    counters = {loop.variable.name}
    for statement in loop.body:
        if isinstance(statement, Assign) and _is_counter(statement.values[0], counters):
            counters.add(statement.targets[0].name)
    start, stop, is_whole = _shown(loop, first, counters, changing)
    if start is (loop.start or ZERO) and stop is loop.stop:
        return loop
    return _with_ends(loop, start, stop, [_unmasked(s, sums) for s in loop.body] if is_whole else loop.body)


def _shown(
    loop: For, condition: Expr, counters: Collection[str], changing: Collection[str]
) -> tuple[Expr, Expr, bool]:
    """The ends of the loop that the condition leaves, and whether they are all that the condition says."""
    start, stop, is_whole = loop.start or ZERO, loop.stop, True
    for test in conditions(condition, ("and", "&")):
        bound = _bound(test, counters, changing)
        if bound is None:
            is_whole = False
            continue
        relation, limit = bound
        if relation in ("<=", ">"):
            limit = _after(limit, loop.stop)
        if relation in ("<", "<="):
            stop = minimum(stop, limit)
        else:
            start = maximum(start, limit)
    return start, stop, is_whole


def _apart(loop: For) -> Block:
    """The loop over the elements that a mask lets through, then the terms of all others at once, if they are equal."""
    read = _values_and_terms(loop, loop.body)
    if read is None or not read[1]:
        return [loop]
    values, terms = read
    counters = _counters(loop, values)
    changing = {*values, *terms, loop.variable.name}
    for mask in _masks([*values.values(), *terms.values()]):
        start, stop, is_whole = _shown(loop, _resolved(mask, values), counters, changing)
        hidden = {name: _hidden(term, mask.text, values) for name, term in terms.items()} if is_whole else {}
        if not hidden or any(e is None or not changing.isdisjoint(e.names) for e in hidden.values()):
            continue
        shown = _with_ends(loop, start, stop, [_with_choice(s, mask.text) for s in loop.body])
        count = minus(minus(loop.stop, loop.start or ZERO), maximum(minus(stop, start), ZERO))
        return [shown, If([(count > 0, [_added(name, e, count) for name, e in hidden.items() if e is not None])])]
    return [loop]


@dataclass(frozen=True)
class _Blocks:
    """A loop over blocks of elements, whose sums are added to a total.

        for start in range(0, n0, 4096):
            for i in range(start, minimum(start + 4096, n0)):
                ...
                acc = reduce_add(acc, ...)
            total = reduce_add(total, float64(acc))
            acc = c1
    """

    around: For
    inner: For
    tail: Block
    totals: Mapping[str, tuple[Name, Expr]]
    """By the sum of a block: the total, and the term that is added to it."""


def _blocks_of(loop: For, known: _Known, starts: Mapping[str, Expr]) -> _Blocks | None:
    """`starts`: the values of variables before the loop."""
    size, tail = loop.step, loop.body[1:]
    inner = loop.body[0] if loop.body else None
    if size < 2 or size & (size - 1) or loop.kind != "range" or (loop.start or ZERO).text != ZERO.text:
        return None
    if not isinstance(inner, For) or inner.step != 1 or inner.kind != "range" or inner.start is None:
        return None
    if inner.start.text != loop.variable.name or inner.stop.text != minimum(loop.variable + size, loop.stop).text:
        return None
    totals: dict[str, tuple[Name, Expr]] = {}
    for statement in tail:
        match statement:
            case Assign(targets=(target,), values=(Call(function="reduce_add", arguments=(Name() as total, term)),)):
                sums = [name for name in assigned(inner.body) if term.reads(name)]
                if total.name != target.name or len(sums) != 1 or sums[0] in totals or term.loads:
                    return None
                totals[sums[0]] = target, term
            case Assign(targets=(target,), values=(Name() as value,)):
                start = starts.get(target.name)
                if target.name not in totals or start is None or start.text != value.text:
                    return None
                if value.name not in known.neutral:
                    return None
            case _:
                return None
    if len(tail) != 2 * len(totals) or {*assigned(tail)} != {*totals, *[total.name for total, _ in totals.values()]}:
        return None
    return _Blocks(loop, inner, tail, totals)


def _in_blocks(loop: For, known: _Known, starts: Mapping[str, Expr]) -> Block | None:
    """A loop over the blocks with elements that a mask lets through, in the place of a loop over all blocks."""
    blocks = _blocks_of(loop, known, starts)
    if blocks is None:
        return None
    whole = For(blocks.inner.variable, None, loop.stop, 1, blocks.inner.body)
    of_totals = {name: starts[total.name] for name, (total, _) in blocks.totals.items() if total.name in starts}
    cut = _cut(whole, known, of_totals)
    if cut is not whole:
        return [_over_blocks(blocks, cut)]
    parts = _apart(whole)
    if len(parts) == 2:
        shown, hidden = parts
        assert isinstance(shown, For) and isinstance(hidden, If)
        ((test, added),) = hidden.branches
        return [_over_blocks(blocks, shown), If([(test, [_to_total(blocks, s) for s in added])])]
    return None


def _over_blocks(blocks: _Blocks, shown: For) -> For:
    """The loop over the blocks with the elements of a loop."""
    around, first = blocks.around, shown.start or ZERO
    begin = around.variable if first is ZERO else maximum(around.variable, first)
    inner = _with_ends(shown, begin, minimum(around.variable + around.step, shown.stop), shown.body)
    start = ZERO if first is ZERO else minus(first, first & (around.step - 1))
    return For(around.variable, start, shown.stop, around.step, [inner, *blocks.tail])


def _to_total(blocks: _Blocks, added: Statement) -> Statement:
    """What is added to the sum of a block is added to the total."""
    assert isinstance(added, Assign)
    (target,), (value,) = added.targets, added.values
    total, term = blocks.totals[target.name]
    assert isinstance(value, Call)
    return Assign((total,), (call("reduce_add", total, with_names(term, {target.name: value.arguments[1]})),))


def _while_finite(loop: For, known: _Known, starts: Mapping[str, Expr]) -> Statement:
    """The loop over the elements that a mask lets through, while the arrays that zeros of the mask are multiplied with
    are finite; the loop itself if a hidden term is something else."""
    read = _values_and_terms(loop, loop.body)
    if read is None or not read[1] or isinstance(loop.stop, Number):  # a few vectors are not worth a branch
        return loop
    values, terms = read
    if any(name not in starts or starts[name].text not in known.zeros for name in terms):
        return loop
    counters = _counters(loop, values)
    changing = {*values, *terms, loop.variable.name}
    for mask in _masks([*values.values(), *terms.values()]):
        start, stop, is_whole = _shown(loop, _resolved(mask, values), counters, changing)
        if not is_whole or (start is (loop.start or ZERO) and stop is loop.stop):
            continue
        arrays: dict[str, Name] = {}
        hidden = [_hidden(term, mask.text, values) for term in terms.values()]
        if all(e is not None and _is_product_with_zero(e, known.zeros, arrays) for e in hidden) and arrays:
            shown = _with_ends(loop, start, stop, [_with_choice(s, mask.text) for s in loop.body])
            return If([(all_finite(arrays.values()), [shown])], [loop])
    return loop


def all_finite(arrays: Iterable[Name]) -> Expr:
    """A test whether all elements of these arrays are finite, which finite.py writes out."""
    return all_of([call("all_finite", name) for name in arrays])


def _is_product_with_zero(e: Expr, zeros: Collection[str], arrays: dict[str, Name]) -> bool:
    """True for +0 or -0 times elements of arrays, which are put into `arrays`."""
    match e:
        case Name(name=name):
            return name in zeros
        case Call(function="float64", arguments=(inner,)):
            return _is_product_with_zero(inner, zeros, arrays)
        case Binary(op="*", left=left, right=right):
            for zero, other in ((left, right), (right, left)):
                factor = _array_of(other)
                if factor is not None and _is_product_with_zero(zero, zeros, arrays):
                    arrays[factor.name] = factor
                    return True
    return False


def _array_of(e: Expr) -> Name | None:
    """The array of which this is an element, perhaps as an f64."""
    while isinstance(e, Call) and e.function == "float64":
        (e,) = e.arguments
    return e.pointer if isinstance(e, Load) and is_float(e.type) else None


def filled_with_zeros(loop: For, zeros: Collection[str]) -> tuple[Name, Expr, Expr] | None:
    """An array that the loop fills from its first element on, and the ends of the part that is not zero."""
    *first, store = loop.body
    read = _values_and_terms(loop, first) if isinstance(store, Store) else None
    if not isinstance(store, Store) or read is None or read[1] or store.index.text != loop.variable.name:
        return None
    values, _ = read
    chosen = _resolved(store.value, values)
    if loop.start is not None or not isinstance(chosen, Call) or chosen.function != "select":
        return None
    mask, _, otherwise = chosen.arguments
    if otherwise.text not in zeros:
        return None
    start, stop, _ = _shown(loop, _resolved(mask, values), _counters(loop, values), {*values, loop.variable.name})
    return store.pointer, start, stop


def _updated(loop: For) -> For:
    """The loop over the elements that change, if it stores all others as they were."""
    *first, store = loop.body
    read = _values_and_terms(loop, first) if isinstance(store, Store) else None
    if not isinstance(store, Store) or read is None or read[1]:
        return loop
    values, _ = read
    chosen = _resolved(store.value, values)
    if not isinstance(chosen, Call) or chosen.function != "select":
        return loop
    mask, _, otherwise = chosen.arguments
    if _resolved(otherwise, values).text != store.pointer[store.index].text:
        return loop
    counters = _counters(loop, values)
    start, stop, is_whole = _shown(loop, _resolved(mask, values), counters, {*values, loop.variable.name})
    if start is (loop.start or ZERO) and stop is loop.stop:
        return loop
    return _with_ends(loop, start, stop, [_with_choice(s, mask.text) for s in loop.body] if is_whole else loop.body)


def _with_ends(loop: For, start: Expr, stop: Expr, body: Block) -> For:
    return For(loop.variable, None if start is ZERO else start, stop, 1, body)


def _values_and_terms(loop: For, statements: Block) -> tuple[dict[str, Expr], dict[str, Expr]] | None:
    """The values of names in these statements of a loop, and the terms that others sum up. None if the loop does more,
    or if a value depends on the iteration before."""
    names = list(assigned(loop.body))
    if loop.step != 1 or loop.kind != "range" or len(set(names)) < len(names):
        return None
    values: dict[str, Expr] = {}
    terms: dict[str, Expr] = {}
    for statement in statements:
        if isinstance(statement, Comment):
            continue
        if not isinstance(statement, Assign) or len(statement.targets) != 1:
            return None
        name, value = statement.targets[0].name, statement.values[0]
        term = _term(statement)
        read = value if term is None else term
        if any(other in names and other not in values for other in read.names):
            return None
        (values if term is None else terms)[name] = read
    return values, terms


def _resolved(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """What a name stands for; another expression as it is."""
    return values.get(e.name, e) if isinstance(e, Name) else e


def _counters(loop: For, values: Mapping[str, Expr]) -> set[str]:
    """The names of the counter, perhaps as a narrower integer."""
    counters = {loop.variable.name}
    counters.update(name for name, value in values.items() if _is_counter(value, counters))
    return counters


_MOST_PARTS = 60
"""Of a hidden term: names are written out in it."""


def _term(statement: Assign) -> Expr | None:
    """The term of ``acc = reduce_add(acc, term)`` of real numbers."""
    match statement:
        case Assign(targets=(target,), values=(Call(function="reduce_add", arguments=(Name() as total, term)),)):
            return term if total.name == target.name and is_float(term.type) else None
    return None


def _masks(values: Collection[Expr]) -> list[Expr]:
    """The conditions by which something is chosen."""
    found = [e.arguments[0] for value in values for e in value.walk() if isinstance(e, Call) and e.function == "select"]
    return list({e.text: e for e in found}.values())


def _chosen(e: Expr, mask: str, which: int) -> Expr | None:
    """One of the two arguments of a choice by this condition."""
    if isinstance(e, Call) and e.function == "select" and e.arguments[0].text == mask:
        return e.arguments[which]
    return None


def _with_choice(statement: Statement, mask: str) -> Statement:
    """The statement where the condition holds."""

    def change(e: Expr) -> Expr | None:
        found = _chosen(e, mask, 1)
        return None if found is None else rewritten(found, change)

    match statement:
        case Assign(targets=targets, values=values):
            return Assign(targets, tuple([rewritten(e, change) for e in values]))
        case Store(pointer=pointer, index=index, value=value):
            return Store(pointer, rewritten(index, change), rewritten(value, change))
    return statement


def _hidden(term: Expr, mask: str, values: Mapping[str, Expr]) -> Expr | None:
    """The term where the condition does not hold, without names for values; None if it is long."""
    parts = 0

    def change(e: Expr) -> Expr | None:
        nonlocal parts
        parts += 1
        if parts > _MOST_PARTS:
            return ZERO
        found = values.get(e.name) if isinstance(e, Name) else _chosen(e, mask, 2)
        return None if found is None else rewritten(found, change)

    result = rewritten(term, change)
    return None if parts > _MOST_PARTS else result


def _added(name: str, term: Expr, count: Expr) -> Statement:
    """``acc = reduce_add(acc, term * float64(count))``"""
    total = Name(name, term.type)
    return Assign((total,), (call("reduce_add", total, product_of(term, call(term.type, count))),))


def _after(limit: Expr, stop: Expr) -> Expr:
    """The number after a limit, as a bound of a loop that ends at `stop`. A limit may be any number: the largest one
    means that there is no limit, and has none after it."""
    narrow = isinstance(limit, Call) and limit.function == "int64" and limit.arguments[0].type == "int32"
    return plus(limit if narrow else minimum(limit, stop), Number(1))


def _unmasked(statement: Statement, sums: Collection[str]) -> Statement:
    """A sum or an extremum without its mask."""
    found = _masked(statement)
    return statement if found is None or found.target.name not in sums else found.unmasked()


def _mask(statement: Statement, known: _Known, starts: dict[str, Expr]) -> _Masked | None:
    """``acc = reduce_add(acc, select(condition, term, 0))`` and the like, if it does nothing where its condition does
    not hold."""
    found = _masked(statement)
    if found is None or not (isinstance(found.total, Name) and found.total.name == found.target.name):
        return None
    return found if known.is_nothing(found, starts.get(found.target.name)) else None


def _is_value(statement: Statement) -> bool:
    """True for a statement that only names a value that does not depend on other iterations."""
    if not isinstance(statement, Assign) or len(statement.targets) != 1:
        return False
    name = statement.targets[0].name
    return not statement.values[0].reads(name)


def _are_read_once(body: Block, sums: Collection[str]) -> bool:
    """True if a sum is read where it is added to, and nowhere else."""
    read = [
        name
        for statement in body
        if isinstance(statement, Assign)
        for name in statement.values[0].names
        if name in sums
    ]
    return len(read) == len(set(read)) == len(sums)


def _bound(test: Expr, counters: Collection[str], changing: Collection[str]) -> tuple[str, Expr] | None:
    """The relation of the counter to a number that does not change in the loop, as an int64."""
    if not isinstance(test, Binary) or test.op not in MIRRORED:
        return None
    for op, left, right in ((test.op, test.left, test.right), (MIRRORED[test.op], test.right, test.left)):
        if _is_counter(left, counters) and right.type in _COUNTERS and _is_fixed(right, changing):
            return op, as_expr(right) if right.type == "int64" else call("int64", right)
    return None


def _is_counter(e: Expr, counters: Collection[str]) -> bool:
    """True for the counter, perhaps as a narrower integer."""
    if isinstance(e, Call) and e.function in _COUNTERS:
        (e,) = e.arguments
    return isinstance(e, Name) and e.name in counters


def _is_fixed(e: Expr, changing: Collection[str]) -> bool:
    return isinstance(e, Number) or (isinstance(e, Name) and e.name not in changing)
