"""Write rows of large results by non-temporal stores.

    for j in range(n0):                      for j_tile in range(0 - shift, n0, 1024):
        out[i * n0 + j] = x[n0 - 1 - j]          low = maximum(j_tile, 0)
                                                 stop = minimum(j_tile + 1024, n0)
                                                 for j in range(low, stop):
                                                     row[j - j_tile] = x[n0 - 1 - j]
                                                 ...                               elements before the first line
                                                 for line in range(first, last, 16):
                                                     for lane in streamed(16):
                                                         out[at + (line + lane)] = row[line + lane]
                                                 ...                               elements after the last line

A plain store reads the line that it writes, and a large result drives everything else out of the caches. Pieces of a
row are made in a local array and are copied from there by whole lines; `shift` lets pieces begin with a line. Elements
that do not fill a line are stored as ever, so parts of a row that different loops or threads write do not disturb each
other.
A row may have a loop of a fixed count inside, which writes neighbours: ``out[(i * n0 + j) * 4 + k] = x[i * n0 + j]``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from .expressions import ZERO, Binary, Call, Expr, Load, Name, Number, call, minus, plus, times
from .rewrite import Substitution
from .statements import Assign, Block, Comment, For, LocalArray, Statement, Store, expressions_of, walk, with_blocks

LINE = 64
"""Bytes of a line of the cache."""

_PIECE = 4096
"""Bytes of a piece of a row."""

_MOST_TOGETHER = 64
"""Neighbours that an inner loop writes."""


_Arrays = dict[tuple[str, int], Name]
"""The local arrays, by their types and their elements."""


def nontemporal_rows(block: Block, widths: Mapping[str, int], fresh: Callable[[str], str]) -> Block:
    """The statements, with non-temporal stores of rows through pointers of `widths` (bytes of an element of each); the
    same object if there are none. `fresh` gives names for new variables."""
    read = {
        part.pointer.name
        for statement in walk(block) for whole in expressions_of(statement) for part in whole.walk()
        if isinstance(part, Load)
    }  # fmt: skip
    widths = {name: width for name, width in widths.items() if name not in read and LINE % width == 0}
    arrays: _Arrays = {}
    found = _rewritten(block, widths, fresh, arrays)
    return [*[LocalArray(name, count, dtype) for (dtype, count), name in arrays.items()], *found] if arrays else block


def _rewritten(block: Block, widths: Mapping[str, int], fresh: Callable[[str], str], arrays: _Arrays) -> Block:
    result: Block = []
    for statement in block:
        row = _row(statement, widths) if isinstance(statement, For) else None
        if row is None:
            result.append(with_blocks(statement, lambda inner: _rewritten(inner, widths, fresh, arrays)))
        else:
            result += _written(row, widths[row.store.pointer.name], fresh, arrays)
    return result


@dataclass(frozen=True)
class _Row:
    """A loop that writes consecutive elements: each iteration writes one element, or one for each iteration of
    `inner`."""

    loop: For
    inner: For | None
    store: Store
    together: int


def _row(loop: For, widths: Mapping[str, int]) -> _Row | None:
    if loop.step != 1 or loop.kind != "range" or _is_short(loop.stop):
        return None
    inner = next((s for s in loop.body if isinstance(s, For)), None)
    together = 1
    statements = [s for s in loop.body if s is not inner]
    if inner is not None:
        if inner.step != 1 or inner.start is not None or inner.kind == "streamed" or not isinstance(inner.stop, Number):
            return None
        together = int(inner.stop.value)
        statements += inner.body
    stores = [s for s in statements if isinstance(s, Store)]
    if len(stores) != 1 or not all(isinstance(s, Assign | Store | Comment) for s in statements):
        return None
    (store,) = stores
    if store.pointer.name not in widths or not 1 <= together <= _MOST_TOGETHER:
        return None
    if inner is not None and store not in inner.body:
        return None
    assigned = {target.name for s in statements if isinstance(s, Assign) for target in s.targets}
    parts = list(store.index.walk())
    if any(isinstance(p, Load) or (isinstance(p, Name) and p.name in assigned) for p in parts):
        return None
    if factor(store.index, loop.variable.name) != together:
        return None
    if inner is not None and factor(store.index, inner.variable.name) != 1:
        return None
    return _Row(loop, inner, store, together)


def _is_short(stop: Expr) -> bool:
    """True for a loop that ends at a number of the text: sizes that are written there are small."""
    if isinstance(stop, Call) and stop.function == "minimum":
        return any(map(_is_short, stop.arguments))
    return isinstance(stop, Number)


def factor(index: Expr, variable: str) -> int | None:
    """By how much an index grows when a variable grows by one; None if that is not a number in the text."""
    if isinstance(index, Name) and index.name == variable:
        return 1
    if not index.reads(variable):
        return 0
    if not isinstance(index, Binary) or index.type != "int64":
        return None
    left, right = factor(index.left, variable), factor(index.right, variable)
    if left is None or right is None:
        return None
    if index.op in ("+", "-"):
        return left + right if index.op == "+" else left - right
    if index.op == "*":
        for changes, other in ((left, index.right), (right, index.left)):
            if isinstance(other, Number):
                return changes * int(other.value)
    return None


def _written(row: _Row, width: int, fresh: Callable[[str], str], arrays: _Arrays) -> Block:
    """The loop of the module's docstring."""
    loop, store, together = row.loop, row.store, row.together
    line = LINE // width
    piece = max(_PIECE // (width * together) // LINE, 1) * LINE
    counter = loop.variable
    depth = counter.depth

    def name(stem: str) -> Name:
        return Name(fresh(stem), "int64", depth)

    kind = store.pointer.type[:-1], piece * together
    staged = arrays.setdefault(kind, Name(fresh("row"), store.pointer.type))
    tile, low, stop, at, first, last, shift, begin = map(
        name, (f"{counter.name}_tile", "low", "stop", "at", "first", "last", "shift", "begin")
    )
    start = ZERO if loop.start is None else loop.start

    def place(count: Expr) -> Expr:
        """Where the first element of an iteration is."""
        known: dict[str, Expr] = {p.name: p for p in store.index.walk() if isinstance(p, Name)}
        known[counter.name] = count
        if row.inner is not None:
            known[row.inner.variable.name] = ZERO
        return Substitution(known, {}, fresh).expression(store.index)

    def assign(target: Name, value: Expr) -> Assign:
        return Assign((target,), (value,))

    local = times(minus(counter, tile), Number(together))
    if row.inner is not None:
        local = plus(local, row.inner.variable)
    staging = _replaced(loop.body, store, Store(staged, local, store.value))

    def copied(variable: Name) -> Statement:
        return Store(store.pointer, plus(at, variable), staged[variable])

    lead = Binary("&", place(start), Number(line - 1))
    edge, whole, lane, rest = map(name, ("edge", "line", "lane", "rest"))
    end = times(minus(stop, tile), Number(together))
    line_copy = Store(store.pointer, plus(at, plus(whole, lane)), staged[plus(whole, lane)])
    body: Block = [
        assign(low, call("maximum", tile, start)),
        assign(stop, call("minimum", plus(tile, Number(piece)), loop.stop)),
        replace(loop, start=low, stop=stop, body=staging),
        assign(at, place(tile)),
        assign(begin, times(minus(low, tile), Number(together))),
        assign(rest, end),
        assign(first, call("minimum", begin + (Binary("&", ZERO - (at + begin), Number(line - 1))), rest)),
        assign(last, first + Binary("//", rest - first, Number(line)) * line),
        For(edge, begin, first, 1, [copied(edge)]),
        For(whole, first, last, line, [For(lane, None, Number(line), 1, [line_copy], "streamed")]),
        For(edge, last, rest, 1, [copied(edge)]),
    ]
    aligned = ZERO if line % together else lead if together == 1 else Binary("//", lead, Number(together))
    return [assign(shift, aligned), For(tile, minus(start, shift), loop.stop, piece, body)]


def _replaced(block: Block, old: Store, new: Store) -> Block:
    return [
        new if statement is old else with_blocks(statement, lambda inner: _replaced(inner, old, new))
        for statement in block
    ]
