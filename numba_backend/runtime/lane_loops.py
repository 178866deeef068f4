"""Short loops over neighbours in memory, as instructions of vectors.

    for j in range(16):                                    %s = load <16 x float>, %row
        row[j] = row[j] + factor * x[at + j]               %v = load <16 x float>, %x
                                                           ...
A tile of sums is written as two hundred such loops. LLVM would unroll each, find that the copies belong together, and
make these vectors of them in the end, which takes most of the time in which such a kernel compiles.

Such a loop has a power of two of iterations, and a body of stores and of names that only the body reads, or one sum.
The elements that iteration `j` reads and writes lie at the index of iteration 0 plus `j`; and what is written is read,
or written again, at the same index only, or at another multiple of the number of iterations. So it does not matter that
each statement is carried out for all iterations before the next one begins. Arithmetic is that of floating point,
comparisons and choices between numbers among it; other elements may be copied.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import llvmlite.ir as llir

from ..loops.expressions import Binary, Call, Expr, Load, Name, Number, Unary
from ..loops.inward import temporaries
from ..loops.statements import Assign, Comment, For, LoopProgram, Store
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
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_DECISIONS = {"and": "and_", "or": "or_"}
_INTRINSICS = {"abs": "fabs", "sqrt": "sqrt"}
_SUFFIXES = {"float32": "f32", "float64": "f64"}
_I32 = llir.IntType(32)


class LaneLoop(NamedTuple):
    """A loop that is carried out as instructions of vectors with `lanes` elements."""

    variable: str
    lanes: int
    stores: tuple[Store | Assign, ...]
    """The body. What is assigned is not read outside of it."""
    total: Assign | None
    """``acc = reduce_add(acc, term)``, in place of stores."""
    rows: frozenset[str] = frozenset()
    """Local arrays of `lanes` elements, which lie in registers."""


def names_of_bodies(program: LoopProgram) -> frozenset[str]:
    """The temporaries of a kernel."""
    return temporaries(program.body) - frozenset(program.parameters)


def lane_loop(
    loop: For, local_arrays: Mapping[str, int], names: Collection[str] = frozenset()
) -> LaneLoop | None:
    """The loop as vectors; None if it is not of this kind. `local_arrays`: those so far, and their lengths. `names`:
    those of `names_of_bodies`."""
    lanes = trip_count(loop)
    if not LEAST <= lanes <= MOST or lanes & (lanes - 1):
        return None
    body = [statement for statement in loop.body if not isinstance(statement, Comment)]
    variable = loop.variable.name
    if len(body) == 1 and isinstance(body[0], Assign):
        return _sum(body[0], variable, lanes, local_arrays)
    steps = [statement for statement in body if isinstance(statement, (Store, Assign))]
    stores = [statement for statement in steps if isinstance(statement, Store)]
    if not stores or len(steps) < len(body):
        return None
    written = _Written(variable, lanes, stores)
    local = set(local_arrays)
    for step in steps:
        if isinstance(step, Assign):
            if not _is_named(step, written, names):
                return None
            continue
        element = step.pointer.type[:-1]
        varies = written.varies(step.value)
        copies = isinstance(step.value, Load) or not varies
        if not follows(step.index, variable, written.names) or not written.allows(step.pointer.name, step.index):
            return None
        if element not in (FLOATS | INTEGERS if copies else FLOATS):
            return None
        near = (_loads(step.value) | {step.pointer.name}) & local or written.names
        if not copies and (lanes * _BYTES[element] < FULL or not near):
            return None
        if not _is_lanes(step.value, element, written):
            return None
    kinds = {step.pointer.type[:-1] for step in stores}
    if written.names and (len(kinds) > 1 or lanes * _BYTES[kinds.pop()] < FULL):
        return None
    rows = frozenset(name for name, count in local_arrays.items() if count == lanes)
    return LaneLoop(variable, lanes, tuple(steps), None, rows)


class _Written:
    """What a body writes: elements of arrays, and names."""

    def __init__(self, variable: str, lanes: int, stores: Sequence[Store]) -> None:
        self.variable, self.lanes = variable, lanes
        self.names: dict[str, str] = {}
        """Names that have been assigned so far, and their types."""
        self.arrays: dict[str, list[Expr]] = {}
        """The indices at which arrays are written."""
        for store in stores:
            self.arrays.setdefault(store.pointer.name, []).append(store.index)

    def varies(self, value: Expr) -> bool:
        """True if the value is not the same in all iterations."""
        return value.reads(self.variable) or (
            bool(self.names) and any(isinstance(part, Name) and part.name in self.names for part in value.walk())
        )

    def allows(self, array: str, index: Expr) -> bool:
        """True if no iteration reads or writes at this index what another one writes: the array is written at the same
        index only, or all of them begin at multiples of the number of iterations."""
        indices = self.arrays.get(array, ())
        return all(other.text == index.text for other in indices) or all(map(self._is_multiple, (index, *indices)))

    def _is_multiple(self, index: Expr) -> bool:
        match index:
            case Binary(op="+", left=Binary(op="*", right=Number(value=self.lanes)), right=Name(name=self.variable)):
                return True
        return False


def _is_named(step: Assign, written: _Written, names: Collection[str]) -> bool:
    """``name = value`` with a number or a truth that differs between iterations; `written` then knows the name."""
    if len(step.targets) != 1:
        return False
    (target,), (value,) = step.targets, step.values
    if target.name not in names or target.type not in FLOATS | {"bool"} or value.type != target.type:
        return False
    if not _is_lanes(value, target.type, written):
        return False
    written.names[target.name] = target.type
    return True


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
    written = _Written(variable, lanes, ())
    if term.reads(target.name) or not term.reads(variable) or not _is_lanes(term, target.type, written):
        return None
    return LaneLoop(variable, lanes, (), statement)


_BYTES = {"int8": 1, "int16": 2, "int32": 4, "float32": 4, "int64": 8, "float64": 8}
_BYTES |= {f"u{name}": size for name, size in _BYTES.items() if name.startswith("int")}


def trip_count(loop: For) -> int:
    """How often the body runs, if that is a number in the text and it starts at 0; otherwise 0."""
    start, stop = loop.start, loop.stop
    if loop.step != 1 or not (start is None or (isinstance(start, Number) and start.value == 0)):
        return 0
    return int(stop.value) if isinstance(stop, Number) and stop.type == "int64" else 0


def _is_lanes(value: Expr, type_: str, written: _Written) -> bool:
    """Whether a value of this type can be computed for all iterations at once."""
    if value.type != type_:
        return False
    if not written.varies(value):
        return not any(isinstance(part, Load) and part.pointer.name in written.arrays for part in value.walk())

    def alike(parts: Sequence[Expr], kind: str) -> bool:
        return all(_is_lanes(part, kind, written) for part in parts)

    match value:
        case Name(name=name):
            return name in written.names
        case Load(pointer=pointer, index=index):
            return written.allows(pointer.name, index) and follows(index, written.variable, written.names)
        case Binary(op=op, left=Name(name=written.variable), right=bound) if op in _COMPARISONS:
            return bound.type == "int64" and not written.varies(bound) and not _loads(bound)
        case Binary(op=op):
            if op in _COMPARISONS:
                return value.left.type in FLOATS and alike(value.parts, value.left.type)
            return (op in _FLOATING or op in _DECISIONS) and alike(value.parts, type_)
        case Unary(op=op):
            return op == ("not" if type_ == "bool" else "-") and alike(value.parts, type_)
        case Call(function="select", arguments=(condition, *choices)):
            return alike([condition], "bool") and alike(choices, type_)
        case Call(function=function, arguments=arguments):
            return function in _INTRINSICS and alike(arguments, type_)
    return False


def follows(index: Expr, variable: str, names: Collection[str] = (), tables: Collection[str] = ()) -> bool:
    """True if the index is the variable plus what does not depend on it nor on `names`, and reads no memory but that of
    `tables`."""
    if index.type != "int64":
        return False
    for part in index.walk():
        if isinstance(part, Load) and part.pointer.name not in tables:
            return False
        if isinstance(part, Name) and part.name in names:
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


def _loads(value: Expr) -> set[str]:
    return {part.pointer.name for part in value.walk() if isinstance(part, Load)}


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
        self._names: dict[str, Any] = {}
        self._assigned = frozenset(t.name for s in loop.stores if isinstance(s, Assign) for t in s.targets)

    def stores(self) -> None:
        """The body. With names, all of it for the iterations of one register, then for the next ones."""
        steps = self._loop.stores
        kinds = [step.pointer.type[:-1] for step in steps if isinstance(step, Store)]
        if len(kinds) < len(steps):
            lanes = self._lanes(kinds[0])
            for first in range(0, self._loop.lanes, lanes):
                for step in steps:
                    self._step(step, first, lanes)
                self._names = {}
            return
        for store in steps:
            assert isinstance(store, Store)
            lanes = self._lanes(store.pointer.type[:-1], self._moves(store))
            for first in range(0, self._loop.lanes, lanes):
                self._step(store, first, lanes)
            self._everywhere = {}

    def _step(self, step: Store | Assign, first: int, lanes: int) -> None:
        """A statement in the iterations from `first` on."""
        if isinstance(step, Assign):
            ((target,), (value,)) = step.targets, step.values
            self._names[target.name] = self._value(value, first, lanes)
            return
        place = self._place(step.pointer, step.index, first, lanes)
        self._builder.store(self._value(step.value, first, lanes), place, align=_BYTES[step.pointer.type[:-1]])

    def total(self, before: Any) -> Any:
        """`before` plus the sum of the terms."""
        assert self._loop.total is not None
        builder, flags = self._builder, ("reassoc", "contract")
        term = self._loop.total.values[0].parts[1]
        lanes = self._lanes(term.type)
        vectors = [self._value(term, first, lanes) for first in range(0, self._loop.lanes, lanes)]
        vector = functools.reduce(lambda a, b: builder.fadd(a, b, flags=flags), vectors)
        name = f"llvm.vector.reduce.fadd.v{lanes}{_SUFFIXES[term.type]}"
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
        if not self._varies(value):
            found = self._everywhere.get(id(value))
            if found is None:
                found = self._everywhere[id(value)] = _repeated(builder, self._scalar(value, first), lanes)
            return found
        if isinstance(value, Name):
            return self._names[value.name]
        if isinstance(value, Load):
            place = self._place(value.pointer, value.index, first, lanes)
            return builder.load(place, align=_BYTES[value.type])
        if isinstance(value, Binary) and value.left.type == "int64":
            return self._counted(value, first, lanes)
        parts = [self._value(part, first, lanes) for part in value.parts]
        match value:
            case Binary(op=op) if op in _COMPARISONS:
                return (builder.fcmp_unordered if op == "!=" else builder.fcmp_ordered)(op, *parts)
            case Binary(op=op):
                return getattr(builder, _FLOATING.get(op) or _DECISIONS[op])(*parts)
            case Unary(op="not"):
                return builder.not_(parts[0])
            case Unary():
                return builder.fsub(_repeated(builder, constant(value.type, -0.0), lanes), parts[0])
            case Call(function="select"):
                return builder.select(*parts)
        assert isinstance(value, Call)
        name = f"llvm.{_INTRINSICS[value.function]}.v{lanes}{_SUFFIXES[value.type]}"
        function = builder.module.globals.get(name)
        if function is None:
            kind = parts[0].type
            function = llir.Function(builder.module, llir.FunctionType(kind, [kind]), name)
        return builder.call(function, parts)

    def _counted(self, value: Binary, first: int, lanes: int) -> Any:
        """A comparison of the counter with a number. In 32 bits, as vectors of the elements are not wider: a number
        that no counter reaches is as good as another one on its side."""
        builder = self._builder
        bound = self._scalar(value.right, first)
        for is_beyond, limit in (("<", -1), (">", MOST)):
            last = llir.Constant(bound.type, limit)
            bound = builder.select(builder.icmp_signed(is_beyond, bound, last), last, bound)
        counters = llir.Constant(llir.VectorType(_I32, lanes), [*range(first, first + lanes)])
        return builder.icmp_signed(value.op, counters, _repeated(builder, builder.trunc(bound, _I32), lanes))

    def _varies(self, value: Expr) -> bool:
        names = (self._loop.variable, *self._assigned)
        return any(isinstance(part, Name) and part.name in names for part in value.walk())

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
