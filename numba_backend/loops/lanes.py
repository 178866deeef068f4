"""Check loops over lanes: the iterations of ``for j in lanes(16):`` are the elements of vectors.

    for j in lanes(16):
        row[j] = row[j] + factor * x[at + j]

An emitter writes such a loop where it means vectors, runtime/lane_loops.py makes instructions of vectors of it, and all
other readers treat it as a range. Each statement is carried out for all iterations before the next one begins. The body
is

* stores, and names that nothing else reads. The elements that iteration `j` reads and writes are at the index of
  iteration 0 plus `j`; and an element that is written may be read, or written again, only at the same index, or at
  another multiple of the number of iterations. Of an array that is only read, iteration `j` may also read element
  ``maximum(j - 1, 0)``: its left neighbour. Values are arithmetic, comparisons and selects of floating point,
  comparisons of the counter, comparisons, extrema, sums, differences and products of integers, products of words,
  values that are the same in all iterations, or an element of any type that is copied; or
* one sum, ``total = reduce_add(total, term)``; or
* one ``for k in range(16):`` around a copy; the index of the store follows `j` and the index of the load follows `k`: a
  square block that is transposed.

``streamed(16)`` is a loop over lanes that is one copy.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..machine import LINE
from .expressions import ZERO, Binary, Call, Expr, Load, Name, Number, Unary, maximum
from .statements import Assign, Block, Comment, For, Statement, Store, with_blocks
from .typing import BITS

MOST = 64
"""Iterations of such a loop."""
REGISTER = 32
"""Bytes of a register."""
_LEAST = 4
"""Fewest iterations of a loop that `in_lanes` turns into lanes, if its elements have more than two bytes."""

_COMPLEX = frozenset(("complex64", "complex128"))
WIDTHS = {"bool": 1, **{name: bits // 8 for name, bits in BITS.items()}}
"""Bytes of elements in memory."""

NARROW = 2
"""Bytes of the widest elements that LLVM does not make vectors of in straight code (runtime/llvm_backend.py)."""

FLOATS = frozenset(("float32", "float64"))
INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
ARITHMETIC = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
DECISIONS = {"and": "and_", "or": "or_"}
INTRINSICS = {"abs": "fabs", "sqrt": "sqrt"}
"""How LLVM calls the operations."""
LANES = 16
"""The words of a vector. An instruction multiplies the pairs or fours of numbers in each word."""
WORDS = frozenset(("dot_bytes", "dot_shorts", "dot_bf16", "dot_bf16_normal"))
OF_INTEGERS = {"add": "add", "subtract": "sub", "multiply": "mul"}
OF_FLOATS = {"add": "fadd", "subtract": "fsub"}
"""Functions of numbers of one type."""
EXTREMA = {"minimum": "min", "maximum": "max"}
"""How LLVM's names of the extrema of integers end; those of floating point have the names of the functions."""


class NotLanes(ValueError):
    """A loop over lanes that has no form in vectors; says why."""


def statements_of(block: Block) -> list[Statement]:
    """The statements of a body, without comments."""
    return [statement for statement in block if not isinstance(statement, Comment)]


def in_lanes(
    loop: For, registers: Collection[str] | None = None, own: Collection[str] = (), *, always: bool = False
) -> For:
    """Make lanes of a loop if its body has a form in vectors, and either copies or fills a whole number of registers of
    32 bytes, two at least. For emitters that know neither the operations nor the types of the body. LLVM may find
    longer vectors in the loops around a shorter loop, or around one that uses none of `registers`, the arrays that are
    kept in registers. So it does where one value fills a part of a register in memory, and then the next value the next
    part (repeated pixels: 1.6 times), though not of bytes. None: the loop uses some. `own`: names that are read in the
    loop's body only. `always`: of any body that has a form, unless it goes along one sum."""
    count = trip_count(loop)
    stores = [step for step in loop.body if isinstance(step, Store)]
    if loop.kind != "range" or not 1 < count <= MOST or not stores:
        return loop
    names = {target.name for step in loop.body if isinstance(step, Assign) for target in step.targets}
    copies = not names and all(_moves(store, loop.variable.name) for store in stores)
    kinds = {store.pointer.type[:-1] for store in stores}
    narrowest = min(WIDTHS[kind] for kind in kinds)
    is_whole = count * narrowest % REGISTER == 0 or count & (count - 1) == 0
    if not is_whole or count < _LEAST:
        pays = copies and narrowest <= NARROW and all(isinstance(store.value, Load) for store in stores)
    else:
        near = registers is None or not _arrays(stores).isdisjoint(registers)
        part = narrowest > 1 and count * narrowest < REGISTER and not any(isinstance(s.value, Load) for s in stores)
        pays = (copies and (near or not part)) or (near and (always or count * narrowest >= LINE))
    if not pays or not kinds.isdisjoint(_COMPLEX) or not names <= set(own):
        return loop
    try:
        _check_lanes(loop)
    except NotLanes:
        return loop
    return replace(loop, kind="lanes")


def _moves(store: Store, variable: str) -> bool:
    return isinstance(store.value, Load) or not store.value.reads(variable)


def _arrays(stores: Sequence[Store]) -> set[str]:
    return {store.pointer.name for store in stores} | {load.pointer.name for s in stores for load in s.value.loads}


def with_lanes(block: Block, registers: Collection[str] | None = None, own: Collection[str] = ()) -> Block:
    """The statements, with loops over lanes: see `in_lanes`."""
    return [
        with_blocks(
            in_lanes(s, registers, own) if isinstance(s, For) else s, lambda inner: with_lanes(inner, registers, own)
        )
        for s in block
    ]


def check_kind(loop: For) -> None:
    """Raises `NotLanes` if the loop is said to be one over lanes and is none."""
    if loop.kind == "lanes":
        _check_lanes(loop)
    elif loop.kind == "streamed":
        match statements_of(loop.body):
            case [Store(value=Load(pointer=Name(type=type_)), pointer=Name(type=same))] if (
                type_ == same and trip_count(loop) * WIDTHS[type_[:-1]] % LINE == 0
            ):
                _check_lanes(loop)
            case _:
                raise NotLanes("what is streamed is copied, by one store of whole lines")


def _check_lanes(loop: For) -> None:
    count, variable = trip_count(loop), loop.variable.name
    if not 1 < count <= MOST:
        raise NotLanes(f"from 2 to {MOST} iterations, a number in the text: {loop.stop.text}")
    match statements_of(loop.body):
        case [For(kind="range", variable=Name(name=inner)) as within] if trip_count(within) == count:
            _check_transpose(statements_of(within.body), variable, inner, count)
        case [Assign(targets=(total,), values=(Call(function="reduce_add", arguments=(Name(name=same), term)),))] if (
            same == total.name
        ):
            if total.type not in FLOATS or term.reads(same) or count & (count - 1):
                raise NotLanes(f"a sum of 2, 4, 8 ... terms of floating point that do not read it: {term.text}")
            _Body(variable, count).check(term, total.type)
        case steps:
            _check_steps(steps, variable, count)


def trip_count(loop: For) -> int:
    """How often the body runs, if that is a number in the text and it starts at 0; otherwise 0."""
    start, stop = loop.start, loop.stop
    if loop.step != 1 or not (start is None or (isinstance(start, Number) and start.value == 0)):
        return 0
    return int(stop.value) if isinstance(stop, Number) and stop.type == "int64" else 0


def _check_transpose(body: Sequence[Statement], outer: str, inner: str, count: int) -> None:
    match body:
        case [Store(pointer=to, index=at, value=Load(pointer=source, index=of))] if (
            to.type == source.type and to.name != source.name and follows(at, outer) and count & (count - 1) == 0
        ):
            tables = {load.pointer.name for load in of.loads} - {to.name}
            if follows(of, inner, tables=tables):
                return
    raise NotLanes("a block that is transposed: one copy between arrays, whose index follows the outer loop where it "
                   "stores and the inner one where it loads")  # fmt: skip


def _check_steps(steps: Sequence[Statement], variable: str, count: int) -> None:
    stores = [step for step in steps if isinstance(step, Store)]
    if not stores or (len(stores) < len(steps) and len({WIDTHS.get(s.pointer.type[:-1]) for s in stores}) > 1):
        raise NotLanes("a store, and with names stores of one width")
    body = _Body(variable, count, stores, [t.name for s in steps if isinstance(s, Assign) for t in s.targets])
    for step in steps:
        match step:
            case Assign(targets=(target,), values=(value,)):
                body.name(target, value)
            case Store():
                body.store(step)
            case _:
                raise NotLanes(f"stores and assignments of one name: {type(step).__name__}")


class _Body:
    """The elements of arrays and the names that a body writes."""

    def __init__(self, variable: str, count: int, stores: Sequence[Store] = (), later: Collection[str] = ()) -> None:
        self._variable, self._count = variable, count
        self._later = set(later)
        """Names that are assigned from here on."""
        self._names: dict[str, str] = {}
        """Names that have been assigned so far, and their types."""
        self._arrays: dict[str, list[Expr]] = {}
        """The indices at which arrays are written."""
        for store in stores:
            self._arrays.setdefault(store.pointer.name, []).append(store.index)

    def name(self, target: Name, value: Expr) -> None:
        """``target = value``"""
        if target.type not in FLOATS | INTEGERS | {"bool"}:
            raise NotLanes(f"names of numbers and bool: {target.name} is {target.type}")
        self.check(value, target.type)
        self._names[target.name] = target.type
        self._later.discard(target.name)

    def store(self, store: Store) -> None:
        """``pointer[index] = value``"""
        self._check_place(store.pointer, store.index)
        element = store.pointer.type[:-1]
        if isinstance(store.value, Load) or not self._varies(store.value):
            if element not in WIDTHS or (element in _COMPLEX and not isinstance(store.value, Load)):
                raise NotLanes(f"elements that have a form in vectors: {element}")
        elif element not in FLOATS | INTEGERS:
            raise NotLanes(f"arithmetic of floating point and integers: {store.value.text} is {element}")
        self.check(store.value, element)

    def _check_place(self, pointer: Name, index: Expr) -> None:
        """No iteration reads or writes an element at this index that another one writes: the array is written at the
        same index only, or all of them begin at multiples of the number of iterations."""
        if not follows(index, self._variable, self._names):
            raise NotLanes(f"an index that is {self._variable} plus what is the same in all iterations: {index.text}")
        indices = self._arrays.get(pointer.name, ())
        if all(other.text == index.text for other in indices) or all(map(self._is_multiple, (index, *indices))):
            return
        raise NotLanes(f"an array that is written at one index: {pointer.name}[{index.text}]")

    def _is_multiple(self, index: Expr) -> bool:
        match index:
            case Binary(op="+", left=Binary(op="*", right=Number(value=self._count)), right=Name(name=self._variable)):
                return True
        return False

    def _is_in_memory(self, value: Expr) -> bool:
        """True for an element that is in no register: the loop begins anywhere in its array."""
        return isinstance(value, Load) and not isinstance(value.index, Name)

    def _varies(self, value: Expr) -> bool:
        """True if the value is not the same in all iterations."""
        return value.reads(self._variable) or (
            bool(self._names) and not self._names.keys().isdisjoint(value.names)
        )

    def check(self, value: Expr, type_: str) -> None:
        """Raises `NotLanes` unless a value of this type can be computed for all iterations at once."""
        if value.type != type_:
            raise NotLanes(f"values of one type: {value.text} is {value.type} and not {type_}")
        if any(value.reads(name) for name in self._later):
            raise NotLanes(f"names that the body has assigned before: {value.text}")
        if not self._varies(value):
            if any(load.pointer.name in self._arrays for load in value.loads):
                raise NotLanes(f"what the loop writes is no number for all iterations: {value.text}")
            return
        parts: Sequence[tuple[Expr, str]]
        match value:
            case Name(name=name) if name in self._names:
                return
            case Load(pointer=pointer, index=index):
                if not (is_left_neighbour(index, self._variable) and pointer.name not in self._arrays):
                    self._check_place(pointer, index)
                return
            case Binary(op=op, left=Name(name=self._variable), right=bound) if (
                op in COMPARISONS and bound.type == "int64" and not self._varies(bound)
            ):
                if bound.loads:
                    raise NotLanes(f"a bound in memory: {bound.text}")
                return
            case Binary(op=op) if op in COMPARISONS and value.left.type in FLOATS | INTEGERS:
                parts = [(part, value.left.type) for part in value.parts]
            case Binary(op=op) if op in DECISIONS or (op in ARITHMETIC and type_ in FLOATS):
                parts = [(part, type_) for part in value.parts]
            case Unary(op="not") | Unary(op="-"):
                parts = [(part, type_) for part in value.parts]
            case Call(function="select", arguments=(condition, *choices)):
                parts = [(condition, "bool"), *((choice, type_) for choice in choices)]
            case Call(function=function, arguments=arguments) if function in INTRINSICS and type_ in FLOATS:
                parts = [(argument, type_) for argument in arguments]
            case Call(function=function, arguments=arguments) if function in EXTREMA and type_ in FLOATS | INTEGERS:
                parts = [(argument, type_) for argument in arguments]
            case Call(function=function, arguments=(test,)) if function in INTEGERS and test.type == "bool":
                parts = [(test, "bool")]
            case Call(function=function, arguments=(word,)) if (
                function in INTEGERS and word.type in INTEGERS
                and (WIDTHS[function] >= WIDTHS[word.type] or self._is_in_memory(word))
            ):  # of fewer bits, LLVM would compute only these, by other instructions than those that multiply words
                parts = [(word, word.type)]
            case Call(function="float64", arguments=(Load(type="float32") as word,)):
                parts = [(word, "float32")]
            case Call(function=function, arguments=arguments) if (
                function in (OF_INTEGERS if type_ in INTEGERS else OF_FLOATS)
                and all(argument.type == type_ for argument in arguments)
            ) or (function in WORDS and self._count % LANES == 0):
                parts = [(argument, argument.type) for argument in arguments]
            case _:
                raise NotLanes(f"no form in vectors for {value.text}")
        for part, kind in parts:
            self.check(part, kind)


def left_neighbour(variable: Name) -> Expr:
    """The index of the element before an iteration's own; the first one has none, and reads its own."""
    return maximum(variable - 1, ZERO)


def is_left_neighbour(index: Expr, variable: str) -> bool:
    """True for such an index."""
    return index.text == left_neighbour(Name(variable)).text


def follows(index: Expr, variable: str, names: Collection[str] = (), tables: Collection[str] = ()) -> bool:
    """True if the index is the variable plus a term that depends neither on it nor on `names`, and the index reads no
    memory except `tables`."""
    if index.type != "int64":
        return False
    if any(load.pointer.name not in tables for load in index.loads) or any(name in names for name in index.names):
        return False
    while isinstance(index, Binary) and index.op in ("+", "-"):
        if index.left.reads(variable):
            if index.right.reads(variable):
                return False
            index = index.left
        elif index.op == "+":
            index = index.right
        else:
            return False
    return isinstance(index, Name) and index.name == variable
