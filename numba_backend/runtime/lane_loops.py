"""Short loops over neighbours in memory, as instructions of vectors.

    for j in range(16):                                    %s = load <16 x float>, %row
        row[j] = row[j] + factor * x[at + j]               %v = load <16 x float>, %x
                                                           ...
A tile of sums is written as two hundred such loops. LLVM would unroll each, find that the copies belong together, and
make these vectors of them in the end, which takes most of the time in which such a kernel compiles.

Such a loop has a power of two of iterations, and a body of stores, or one sum. The elements that iteration `j` reads
and writes lie at the index of iteration 0 plus `j`; and what is written is read, or written again, at the same index
only. So it does not matter that each statement is carried out for all iterations before the next one begins. Arithmetic
is that of floating point; other elements may be copied.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import llvmlite.ir as llir

from ..loops.expressions import Binary, Call, Expr, Load, Name, Number, Unary
from ..loops.statements import Assign, Comment, For, Store
from .llvm_values import FLOATS, INTEGERS, constant, value_type

LEAST, MOST = 4, 64
"""Iterations of such a loop."""
FULL = 64
"""Bytes of the widest vector register. Loops over less than that, or over buffers alone, are only taken for copies,
since LLVM may find longer vectors in the loops around them."""

MOVED = 32
"""Bytes of a vector that is copied from memory to memory. What has just been written by narrower or shifted stores is
read the later, the more of them one load must wait for."""

_FLOATING = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_I32 = llir.IntType(32)


class LaneLoop(NamedTuple):
    """A loop that is carried out as instructions of vectors with `lanes` elements."""

    variable: str
    lanes: int
    stores: tuple[Store, ...]
    total: Assign | None
    """``acc = reduce_add(acc, term)``, in place of stores."""
    rows: frozenset[str] = frozenset()
    """Local arrays of `lanes` elements, which lie in registers."""


def lane_loop(loop: For, local_arrays: Mapping[str, int]) -> LaneLoop | None:
    """The loop as vectors; None if it is not of this kind. `local_arrays`: those so far, and their lengths."""
    lanes = _trip_count(loop)
    if not LEAST <= lanes <= MOST or lanes & (lanes - 1):
        return None
    body = [statement for statement in loop.body if not isinstance(statement, Comment)]
    variable = loop.variable.name
    if len(body) == 1 and isinstance(body[0], Assign):
        return _sum(body[0], variable, lanes, local_arrays)
    stores = [statement for statement in body if isinstance(statement, Store)]
    if not stores or len(stores) < len(body):
        return None
    local = set(local_arrays)
    written = {store.pointer.name: store.index.text for store in stores}
    for store in stores:
        element = store.pointer.type[:-1]
        copies = isinstance(store.value, Load) or not _reads(store.value, variable)
        if written[store.pointer.name] != store.index.text or not _follows(store.index, variable):
            return None
        if element not in (FLOATS | INTEGERS if copies else FLOATS):
            return None
        if not copies and (lanes * _BYTES[element] < FULL or not (_loads(store.value) | {store.pointer.name}) & local):
            return None
        if not _is_lanes(store.value, element, variable, written):
            return None
    rows = frozenset(name for name, count in local_arrays.items() if count == lanes)
    return LaneLoop(variable, lanes, tuple(stores), None, rows)


def _sum(statement: Assign, variable: str, lanes: int, local_arrays: Collection[str]) -> LaneLoop | None:
    """``acc = reduce_add(acc, term)`` with a term of elements of local arrays."""
    if len(statement.targets) != 1:
        return None
    (target,), (value,) = statement.targets, statement.values
    if not isinstance(value, Call) or value.function != "reduce_add" or target.type not in FLOATS:
        return None
    first, term = value.arguments
    if not isinstance(first, Name) or first.name != target.name or lanes * _BYTES[target.type] < FULL:
        return None
    if not _loads(term) or not _loads(term) <= set(local_arrays):
        return None
    if _reads(term, target.name) or not _reads(term, variable) or not _is_lanes(term, target.type, variable, {}):
        return None
    return LaneLoop(variable, lanes, (), statement)


_BYTES = {"int8": 1, "int16": 2, "int32": 4, "float32": 4, "int64": 8, "float64": 8}
_BYTES |= {f"u{name}": size for name, size in _BYTES.items() if name.startswith("int")}


def _trip_count(loop: For) -> int:
    """How often the body runs, if that is a number in the text and it starts at 0; otherwise 0."""
    start, stop = loop.start, loop.stop
    if loop.step != 1 or not (start is None or (isinstance(start, Number) and start.value == 0)):
        return 0
    return int(stop.value) if isinstance(stop, Number) and stop.type == "int64" else 0


def _is_lanes(value: Expr, type_: str, variable: str, written: dict[str, str]) -> bool:
    """Whether a value of this type can be computed for all iterations at once."""
    if value.type != type_:
        return False
    if not _reads(value, variable):
        return not any(isinstance(part, Load) and part.pointer.name in written for part in value.walk())
    if isinstance(value, Load):
        same = written.get(value.pointer.name, value.index.text) == value.index.text
        return same and _follows(value.index, variable)
    if isinstance(value, Binary) and value.op in _FLOATING:
        return all(_is_lanes(part, type_, variable, written) for part in value.parts)
    return isinstance(value, Unary) and value.op == "-" and _is_lanes(value.operand, type_, variable, written)


def _follows(index: Expr, variable: str) -> bool:
    """True if the index is the variable plus what does not depend on it, and reads no memory."""
    if index.type != "int64" or any(isinstance(part, Load) for part in index.walk()):
        return False
    while isinstance(index, Binary) and index.op in ("+", "-"):
        if _reads(index.left, variable):
            if _reads(index.right, variable):
                return False
            index = index.left
        elif index.op == "+":
            index = index.right
        else:
            return False
    return isinstance(index, Name) and index.name == variable


def _loads(value: Expr) -> set[str]:
    return {part.pointer.name for part in value.walk() if isinstance(part, Load)}


def _reads(value: Expr, variable: str) -> bool:
    return any(isinstance(part, Name) and part.name == variable for part in value.walk())


class LaneWriter:
    """Writes the instructions of a loop, on vectors of at most `register` bytes: LLVM cuts longer ones too, and then
    moves their parts about. `scalar(expression, j)` gives the LLVM value of an expression in iteration `j`."""

    def __init__(self, builder: Any, loop: LaneLoop, register: int, scalar: Callable[[Expr, int], Any]) -> None:
        self._builder = builder
        self._loop = loop
        self._register = register
        self._scalar = scalar
        self._everywhere: dict[int, Any] = {}
        """Vectors of one number, by their expressions."""

    def stores(self) -> None:
        """The stores, in order."""
        for store in self._loop.stores:
            type_ = store.pointer.type[:-1]
            lanes = self._lanes(type_, self._moves(store))
            for first in range(0, self._loop.lanes, lanes):
                place = self._place(store.pointer, store.index, first, lanes)
                self._builder.store(self._value(store.value, first, lanes), place, align=_BYTES[type_])
            self._everywhere = {}

    def total(self, before: Any) -> Any:
        """`before` plus the sum of the terms."""
        assert self._loop.total is not None
        builder, flags = self._builder, ("reassoc", "contract")
        term = self._loop.total.values[0].parts[1]
        lanes = self._lanes(term.type)
        vectors = [self._value(term, first, lanes) for first in range(0, self._loop.lanes, lanes)]
        vector = functools.reduce(lambda a, b: builder.fadd(a, b, flags=flags), vectors)
        name = f"llvm.vector.reduce.fadd.v{lanes}{'f32' if term.type == 'float32' else 'f64'}"
        function = builder.module.globals.get(name)
        if function is None:
            kinds = [before.type, vector.type]
            function = llir.Function(builder.module, llir.FunctionType(before.type, kinds), name)
        return builder.call(function, [before, vector], fastmath=flags)

    def _moves(self, store: Store) -> bool:
        """Whether elements go from memory to memory."""
        value = store.value
        return isinstance(value, Load) and not {value.pointer.name, store.pointer.name} & self._loop.rows

    def _lanes(self, type_: str, moves: bool = False) -> int:
        nbytes = min(self._register, MOVED) if moves else self._register
        return min(self._loop.lanes, max(nbytes // _BYTES[type_], 1))

    def _value(self, value: Expr, first: int, lanes: int) -> Any:
        """The value in the iterations from `first` on."""
        builder = self._builder
        if not _reads(value, self._loop.variable):
            found = self._everywhere.get(id(value))
            if found is None:
                found = self._everywhere[id(value)] = _repeated(builder, self._scalar(value, first), lanes)
            return found
        if isinstance(value, Load):
            place = self._place(value.pointer, value.index, first, lanes)
            return builder.load(place, align=_BYTES[value.type])
        if isinstance(value, Binary):
            left, right = (self._value(part, first, lanes) for part in value.parts)
            return getattr(builder, _FLOATING[value.op])(left, right)
        assert isinstance(value, Unary)
        nothing = _repeated(builder, constant(value.type, -0.0), lanes)
        return builder.fsub(nothing, self._value(value.operand, first, lanes))

    def _place(self, pointer: Name, index: Expr, first: int, lanes: int) -> Any:
        """A pointer to the vector that begins with the element of iteration `first`."""
        builder = self._builder
        place = builder.gep(self._scalar(pointer, first), [self._scalar(index, first)])
        kind = llir.VectorType(value_type(pointer.type[:-1]), lanes)
        return builder.bitcast(place, kind.as_pointer())


def _repeated(builder: Any, value: Any, lanes: int) -> Any:
    """A vector of one number."""
    kind = llir.VectorType(value.type, lanes)
    if isinstance(value, llir.Constant):
        whole = llir.Constant(kind, [value] * lanes)
        return _Short(whole, "zeroinitializer") if value == llir.Constant(value.type, 0) else whole
    anything = _Short(llir.Constant(kind, llir.Undefined), "undef")
    first = _Short(llir.Constant(llir.VectorType(_I32, lanes), [0] * lanes), "zeroinitializer")
    one = builder.insert_element(anything, value, llir.Constant(_I32, 0))
    return builder.shuffle_vector(one, anything, first)


class _Short(llir.Constant):  # type: ignore[misc]
    """A constant vector with a name in LLVM's language, which need not be spelled element by element."""

    def __init__(self, whole: Any, name: str) -> None:
        super().__init__(whole.type, whole.constant)
        self._name = name

    def get_reference(self) -> str:
        """How an instruction refers to it."""
        return self._name
