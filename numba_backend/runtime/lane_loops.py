"""Loops over lanes (loops/lanes.py), as instructions of vectors.

    for j in lanes(16):                                    %s = load <16 x float>, %row
        row[j] = row[j] + factor * x[at + j]               %v = load <16 x float>, %x
                                                           ...
A tile of sums is written as two hundred such loops. LLVM would unroll each, find that the copies belong together, and
make these vectors of them in the end, which takes most of the time in which such a kernel compiles.

A short run of bytes moves as a few vectors, ever shorter ones. LLVM does not make vectors of straight code with narrow
integers (see llvm_backend.py), so they would move one by one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import llvmlite.ir as llir

from ..loops.expressions import Binary, Call, Expr, Load, Name, Number, Unary
from ..loops.lanes import (
    ARITHMETIC,
    COMPARISONS,
    DECISIONS,
    EXTREMA,
    FLOATS,
    INTEGERS,
    INTRINSICS,
    LANES,
    MOST,
    NARROW,
    OF_FLOATS,
    OF_INTEGERS,
    WIDTHS,
    is_left_neighbour,
)
from ..loops.statements import Assign, LoopProgram, Statement, Store, expressions_of, walk
from .dialect_words import in_vectors
from .llvm_values import constant, value_type
from .math.value import call_intrinsic, type_suffix

MOVED = 32
"""Bytes of a vector that is copied from memory to memory. If narrower or shifted stores have just written these bytes,
a wider load must wait for more of them, and takes longer."""

Scalar = Callable[[Expr, Mapping[str, int]], Any]
"""The LLVM value of an expression, given the numbers of loop variables."""

_I32 = llir.IntType(32)


class Vectors(NamedTuple):
    """The properties of the vectors of a kernel."""

    register: int
    """The bytes of a vector: LLVM cuts longer ones too, and then moves their parts about."""
    rows: Mapping[str, int]
    """Local arrays, which are kept in registers, and the numbers of their elements."""
    words: bool
    """The kernel multiplies words: local arrays are read and written by whole rows of them."""
    features: frozenset[str]
    """The processor's, in LLVM's words."""


class LaneWriter:
    """Writes the instructions of a loop."""

    def __init__(
        self, builder: Any, variable: str, count: int, vectors: Vectors, scalar: Scalar
    ) -> None:
        self._builder = builder
        self._variable, self._count = variable, count
        self._vectors = vectors
        self._scalar = scalar
        self._everywhere: dict[tuple[int, int], Any] = {}
        """Vectors of one number, by their expressions and their lengths."""
        self._names: dict[str, Any] = {}
        self._assigned: frozenset[str] = frozenset()

    def write(self, steps: Sequence[Statement]) -> None:
        """The body. With names, all of it for the iterations of one register, then for the next ones."""
        self._assigned = frozenset(t.name for s in steps if isinstance(s, Assign) for t in s.targets)
        stores = [step for step in steps if isinstance(step, Store)]
        if len(stores) < len(steps):
            for first, lanes in self._parts(stores[0].pointer.type[:-1], self._vectors.register):
                for step in steps:
                    self._step(step, first, lanes)
                self._names = {}
            return
        for store in stores:
            self._store(store)
            self._everywhere = {}

    def _step(self, step: Statement, first: int, lanes: int) -> None:
        """A statement in the iterations from `first` on."""
        if isinstance(step, Assign):
            ((target,), (value,)) = step.targets, step.values
            self._names[target.name] = self._value(value, first, lanes)
        else:
            assert isinstance(step, Store)
            self._put(step, first, lanes)

    def _store(self, store: Store) -> None:
        element, value = store.pointer.type[:-1], store.value
        arrays = {store.pointer.name, *(load.pointer.name for load in value.loads)}
        whole = [name for name in arrays if self._vectors.rows.get(name) == self._count]
        moves = isinstance(value, Load) and not whole
        nbytes = min(self._vectors.register, MOVED) if moves else self._vectors.register
        if self._vectors.words and arrays <= self._vectors.rows.keys():
            nbytes = LANES * WIDTHS[element]
        elif moves and WIDTHS[element] <= NARROW and arrays.isdisjoint(self._vectors.rows):
            parts = list(self._parts(element, self._vectors.register))
            values = [self._value(value, *part) for part in parts]
            for part, made in zip(parts, values, strict=True):
                self._builder.store(made, self._place(store.pointer, store.index, *part), align=_align(element))
            return
        for first, lanes in self._parts(element, nbytes):
            self._put(store, first, lanes)

    def _put(self, store: Store, first: int, lanes: int) -> None:
        place = self._place(store.pointer, store.index, first, lanes)
        self._builder.store(self._value(store.value, first, lanes), place, align=_align(store.pointer.type[:-1]))

    def total(self, before: Any, term: Expr) -> Any:
        """`before` plus the sum of the terms."""
        builder, flags = self._builder, ("reassoc", "contract")
        parts = list(self._parts(term.type, self._vectors.register))
        vectors = [self._value(term, *part) for part in parts]
        vector = functools.reduce(lambda a, b: builder.fadd(a, b, flags=flags), vectors)
        name = f"llvm.vector.reduce.fadd.{type_suffix(vector.type)}"
        return call_intrinsic(builder, name, before.type, before, vector, flags=flags)

    def _parts(self, type_: str, nbytes: int) -> Iterator[tuple[int, int]]:
        """The first iterations of vectors, and their elements: whole registers, then halves and so on for the rest."""
        first, lanes = 0, max(nbytes // WIDTHS[type_], 1)
        while first < self._count:
            while lanes > self._count - first:
                lanes //= 2
            yield first, lanes
            first += lanes

    def _value(self, value: Expr, first: int, lanes: int) -> Any:
        """The value in the iterations from `first` on."""
        builder = self._builder
        if not self._varies(value):
            key = id(value), lanes
            found = self._everywhere.get(key)
            if found is None:
                found = self._everywhere[key] = _repeated(builder, self._scalar(value, {self._variable: first}), lanes)
            return found
        if isinstance(value, Name):
            return self._names[value.name]
        if isinstance(value, Load):
            if is_left_neighbour(value.index, self._variable):
                return self._left_neighbours(value, first, lanes)
            place = self._place(value.pointer, value.index, first, lanes)
            return builder.load(place, align=_align(value.type))
        if isinstance(value, Binary) and isinstance(value.left, Name) and value.left.name == self._variable:
            return self._counted(value, first, lanes)
        parts = [self._value(part, first, lanes) for part in value.parts]
        match value:
            case Binary(op=op) if op in COMPARISONS and value.left.type in INTEGERS:
                unsigned = value.left.type.startswith("u")
                return (builder.icmp_unsigned if unsigned else builder.icmp_signed)(op, *parts)
            case Binary(op=op) if op in COMPARISONS:
                return (builder.fcmp_unordered if op == "!=" else builder.fcmp_ordered)(op, *parts)
            case Binary(op=op):
                return getattr(builder, ARITHMETIC.get(op) or DECISIONS[op])(*parts)
            case Unary(op="not"):
                return builder.not_(parts[0])
            case Unary():
                return builder.fsub(_repeated(builder, constant(value.type, -0.0), lanes), parts[0])
            case Call(function=function) if function in EXTREMA:
                kind = parts[0].type
                if value.type not in FLOATS:
                    function = ("u" if value.type.startswith("u") else "s") + EXTREMA[function]
                return call_intrinsic(builder, f"llvm.{function}.{type_suffix(kind)}", kind, *parts)
            case Call(function=to, arguments=(test,)) if to in INTEGERS and test.type == "bool":
                return builder.zext(parts[0], _vector(to, lanes))
            case Call(function=to, arguments=(word,)) if to in INTEGERS:
                return self._converted(parts[0], word.type, to, lanes)
            case Call(function="float64"):
                return builder.fpext(parts[0], _vector("float64", lanes))
            case Call(function="select"):
                return builder.select(*parts)
            case Call(function=function) if function in in_vectors:
                return in_vectors[function](builder, *parts, self._vectors.features)
            case Call(function=function) if function in OF_INTEGERS:
                return getattr(builder, (OF_INTEGERS if value.type in INTEGERS else OF_FLOATS)[function])(*parts)
        assert isinstance(value, Call)
        kind = parts[0].type
        return call_intrinsic(builder, f"llvm.{INTRINSICS[value.function]}.{type_suffix(kind)}", kind, *parts)

    def _left_neighbours(self, load: Load, first: int, lanes: int) -> Any:
        """The elements before those of the iterations; the first of all iterations has its own."""
        start = Number(max(first - 1, 0))
        place = self._place(load.pointer, start, first, lanes)
        vector = self._builder.load(place, align=_align(load.type))
        if first:
            return vector
        lanes_before = llir.Constant(llir.VectorType(_I32, lanes), [max(lane - 1, 0) for lane in range(lanes)])
        return self._builder.shuffle_vector(vector, vector, lanes_before)

    def _converted(self, vector: Any, of: str, to: str, lanes: int) -> Any:
        """Integers as others."""
        if WIDTHS[to] == WIDTHS[of]:
            return vector
        widen = self._builder.zext if of.startswith("u") else self._builder.sext
        return (self._builder.trunc if WIDTHS[to] < WIDTHS[of] else widen)(vector, _vector(to, lanes))

    def _counted(self, value: Binary, first: int, lanes: int) -> Any:
        """A comparison of the counter with a number. In 32 bits, as vectors of the elements are not wider: a number
        that no counter reaches is as good as another one on its side."""
        builder = self._builder
        bound = self._scalar(value.right, {self._variable: first})
        for is_beyond, limit in (("<", -1), (">", MOST)):
            last = llir.Constant(bound.type, limit)
            bound = builder.select(builder.icmp_signed(is_beyond, bound, last), last, bound)
        counters = llir.Constant(llir.VectorType(_I32, lanes), [*range(first, first + lanes)])
        return builder.icmp_signed(value.op, counters, _repeated(builder, builder.trunc(bound, _I32), lanes))

    def _varies(self, value: Expr) -> bool:
        names = (self._variable, *self._assigned)
        return any(name in names for name in value.names)

    def _place(self, pointer: Name, index: Expr, first: int, lanes: int) -> Any:
        """A pointer to the vector that begins with the element of iteration `first`."""
        builder, at = self._builder, {self._variable: first}
        place = builder.gep(self._scalar(pointer, at), [self._scalar(index, at)])
        return builder.bitcast(place, _vector(pointer.type[:-1], lanes).as_pointer())


def multiplies_words(program: LoopProgram) -> bool:
    """True for a program that calls a function of dialect_words.py."""
    return any(
        isinstance(part, Call) and part.function in in_vectors
        for statement in walk(program.body)
        for whole in expressions_of(statement)
        for part in whole.walk()
    )


def _vector(type_: str, lanes: int) -> Any:
    """The type of so many elements; complex ones are words, since they are only copied."""
    if type_.startswith("complex"):
        return llir.VectorType(llir.IntType(64), lanes * WIDTHS[type_] // 8)
    return llir.VectorType(value_type(type_), lanes)


def _align(type_: str) -> int:
    return min(WIDTHS[type_], 8)


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
    """A constant vector with a name in LLVM's language, so that its elements are not printed one by one."""

    def __init__(self, whole: Any, name: str) -> None:
        super().__init__(whole.type, whole.constant)
        self._name = name

    def get_reference(self) -> str:
        """How an instruction refers to it."""
        return self._name
