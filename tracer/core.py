"""The tracing core: values, the current trace, and the functions through which every operation goes.

An operation is an HLO opcode with its attributes: `bind(opcode, operands, attributes)` infers the result's type, then
asks the current trace to process it. There is one current trace a thread. At the bottom stands EvalTrace, which
computes with NumPy at once; HloTrace records into a computation; transformations add traces of their own, whose
`process` sets `parent` as the current trace and binds what the operation becomes.

Results with several arrays, and the ops that run computations, are flat lists here; HLO's tuples appear only inside
of computations: the root of a traced computation is always a tuple, and while's and conditional's take one.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from ..hlo.builder import check_shape, make_computation, make_constant, make_parameter
from ..hlo.errors import ShapeError
from ..hlo.evaluator import evaluate_op
from ..hlo.ir import NO_ATTRIBUTES, Attributes, HloComputation, HloInstruction, Metadata
from ..hlo.literal import Literal
from ..hlo.opcode import Opcode
from ..hlo.ops.control_flow import CallAttributes, Composite, ConditionalAttributes, WhileAttributes
from ..hlo.ops.structure import ConstantAttributes, GetTupleElementAttributes
from ..hlo.shape import Shape
from .array import Array
from .aval import ShapedArray, aval_of_shape
from .errors import OperandError
from .execution import run_call, run_while
from .source import user_line, user_metadata
from .tracer import Tracer, leaked

__all__ = [
    "EVAL",
    "Array",
    "EvalTrace",
    "HloTrace",
    "HloTracer",
    "ShapedArray",
    "Trace",
    "TracedComputation",
    "Tracer",
    "Value",
    "bind",
    "bind_call",
    "bind_conditional",
    "bind_multi",
    "bind_while",
    "current_metadata",
    "current_trace",
    "eager_with_scalar",
    "eval_computation",
    "leaked",
    "repeat_instruction",
    "returns_element",
    "set_current_trace",
    "shallow_copy",
    "source_metadata",
    "takes_one_tuple",
    "thread_state",
    "trace_to_computation",
]

MAX_CONSTANT_SIZE = 1
"""Concrete arrays of at most this many elements become constants of the program; larger ones, hidden parameters."""


Value: TypeAlias = Array | Tracer
"""A value of a program: concrete (Array) or traced. Functions here take values only; `array.as_value` makes them."""


class Trace(ABC):
    """What an operation means now. `parent`: the trace below, which was current when this one began."""

    parent: Trace | None

    @abstractmethod
    def process(
        self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape
    ) -> Value | list[Value]:
        """The result of an op without called loops or branches: one value, or a list for a tuple shape.

        `shape` is the result's, checked already. Operands may be values of any enclosing trace, or concrete.
        The weak type of results is settled by `bind`.
        """

    @abstractmethod
    def process_call(
        self, computation: HloComputation, operands: tuple[Value, ...], composite: Composite | None
    ) -> list[Value]:
        """Call `computation` (one parameter an operand, the root a tuple)."""

    @abstractmethod
    def process_while(
        self, condition: HloComputation, body: HloComputation, operands: tuple[Value, ...]
    ) -> list[Value]:
        """Loop; both computations take one tuple of the operands."""

    @abstractmethod
    def process_conditional(
        self, branches: tuple[HloComputation, ...], index: Value, operands: tuple[Value, ...]
    ) -> list[Value]:
        """Run the branch `index` (pred: 0 when true; s32: the last when out of range) on one tuple of operands."""

    def with_weak_type(self, value: Value, weak_type: bool) -> Value:
        """The same value, of a type that is weak or not."""
        if value.aval.weak_type is weak_type:
            return value
        if isinstance(value, Array):
            return value.with_aval(value.aval.with_weak_type(weak_type))
        other = shallow_copy(value)
        other.aval = value.aval.with_weak_type(weak_type)
        return other

    def described(self) -> str:
        """For messages: `` while tracing f at file.py:3``."""
        return ""


T = TypeVar("T")


def shallow_copy(tracer: T) -> T:
    """A tracer with the same slots."""
    other = object.__new__(type(tracer))
    for cls in type(tracer).__mro__:
        for slot in getattr(cls, "__slots__", ()):
            if slot != "__weakref__" and hasattr(tracer, slot):
                object.__setattr__(other, slot, getattr(tracer, slot))
    return other


class EvalTrace(Trace):
    """Computes at once: an op by the evaluator's NumPy call, a nested jit or a loop by the backend."""

    parent = None

    def process(
        self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape
    ) -> Value | list[Value]:
        result = evaluate_op(opcode, [self.array(o)._view for o in operands], attributes, shape)
        if shape.tuple_shapes is None:
            return Array(ShapedArray(shape.dimensions, shape.element.dtype), result)
        return [Array(aval_of_shape(s), r) for s, r in zip(shape.tuple_shapes, result, strict=True)]

    def process_call(
        self, computation: HloComputation, operands: tuple[Value, ...], composite: Composite | None
    ) -> list[Value]:
        arrays = [self.array(o) for o in operands]
        if composite is not None and composite.name in ("jit", "scan"):
            return list(run_call(computation, arrays))
        return eval_computation(computation, arrays)

    def process_while(
        self, condition: HloComputation, body: HloComputation, operands: tuple[Value, ...]
    ) -> list[Value]:
        return list(run_while(condition, body, [self.array(o) for o in operands]))

    def process_conditional(
        self, branches: tuple[HloComputation, ...], index: Value, operands: tuple[Value, ...]
    ) -> list[Value]:
        chosen = self.array(index)._view
        if chosen.dtype == np.bool_:
            taken = 0 if chosen else 1
        else:
            taken = int(chosen) if 0 <= chosen < len(branches) else len(branches) - 1
        return eval_computation(branches[taken], operands)

    def array(self, value: Value) -> Array:
        """`value` as an Array; UnexpectedTracerError if it is a tracer that outlived its trace."""
        if isinstance(value, Array):
            return value
        raise leaked(value)


class _ThreadState(threading.local):
    """The current trace of each thread."""

    def __init__(self) -> None:
        self.trace: Trace = EVAL
        self.direct: bool = True
        """True when a call of a jitted function may run its executable at once: nothing is being traced."""
        self.metadata: Metadata | None = None
        """Overrides the user's line: what `eval_computation` is repeating comes from where it first came from."""


EVAL = EvalTrace()
_state = _ThreadState()


def thread_state() -> _ThreadState:
    """This module's thread-local state, for jit's dispatch."""
    return _state


def current_trace() -> Trace:
    """The trace that processes operations of this thread now."""
    return _state.trace


@contextmanager
def set_current_trace(trace: Trace) -> Iterator[None]:
    """Make `trace` current within the block."""
    before, direct = _state.trace, _state.direct
    _state.trace, _state.direct = trace, trace is EVAL
    try:
        yield
    finally:
        _state.trace, _state.direct = before, direct


@contextmanager
def source_metadata(metadata: Metadata | None) -> Iterator[None]:
    """Within the block, recorded instructions carry `metadata` instead of the user's current line."""
    before = _state.metadata
    _state.metadata = metadata
    try:
        yield
    finally:
        _state.metadata = before


def current_metadata(op_name: str) -> Metadata:
    """What an instruction recorded now carries: the user's line, or what `source_metadata` has set."""
    return _state.metadata or user_metadata(op_name)


# ---- bind: the way into the current trace


def bind(
    opcode: Opcode,
    operands: Sequence[Value],
    attributes: Attributes = NO_ATTRIBUTES,
    *,
    shape: Shape | None = None,
    weak_type: bool | None = None,
) -> Value:
    """One operation with one result. `shape` declares the result's type where the op leaves it open.

    The result is weakly typed if `weak_type` says so, or by default if all operands are (and there are any).
    ShapeError, with the rule's label and the user's line, if the operands do not fit.
    """
    operands = tuple(operands)
    if shape is None:
        result_shape = _inferred_shape(opcode, tuple([o.aval for o in operands]), attributes)
    else:
        result_shape = _checked_shape(opcode, [o.aval.hlo for o in operands], attributes, shape)
    trace = _state.trace
    result = cast(Value, trace.process(opcode, operands, attributes, result_shape))
    if weak_type is None:
        weak_type = _all_weak(operands) and result.aval.dtype is not _BOOL
    return result if result.aval.weak_type is weak_type else trace.with_weak_type(result, weak_type)


_BOOL = np.dtype(np.bool_)


def _all_weak(operands: tuple[Value, ...]) -> bool:
    for operand in operands:  # a loop, because this is on every operation's way and mostly ends at the first
        if not operand.aval.weak_type:
            return False
    return bool(operands)


def eager_with_scalar(opcode: Opcode, x: Array, y: Array, attributes: Attributes) -> Array:
    """A binary elementwise op of concrete arrays, one of them a scalar that NumPy broadcasts: outside of all traces."""
    full = x.aval if x.aval.shape else y.aval
    shape = _inferred_shape(opcode, (full, full), attributes)
    result = evaluate_op(opcode, [x._view, y._view], attributes, shape)
    dtype = shape.element.dtype
    return Array(ShapedArray(full.shape, dtype, _all_weak((x, y)) and dtype is not _BOOL), result)


def bind_multi(
    opcode: Opcode, operands: Sequence[Value], attributes: Attributes = NO_ATTRIBUTES, *, shape: Shape | None = None
) -> list[Value]:
    """One operation whose HLO result is a tuple (a reduce of several arrays, rng-bit-generator); strongly typed."""
    operands = tuple(operands)
    result_shape = _checked_shape(opcode, [o.aval.hlo for o in operands], attributes, shape)
    assert result_shape.is_tuple, f"{opcode} has one result"
    return cast("list[Value]", _state.trace.process(opcode, operands, attributes, result_shape))


def bind_call(
    computation: HloComputation, operands: Sequence[Value], composite: Composite | None = None
) -> list[Value]:
    """Call a computation that takes one array parameter an operand and returns a tuple of arrays."""
    operands = tuple(operands)
    _checked_shape(Opcode.CALL, [o.aval.hlo for o in operands], CallAttributes(computation, composite), None)
    return _state.trace.process_call(computation, operands, composite)


def bind_while(condition: HloComputation, body: HloComputation, operands: Sequence[Value]) -> list[Value]:
    """`while`: both computations take one tuple (of the operands' types); `condition` returns pred[]."""
    operands = tuple(operands)
    state = Shape.tuple([o.aval.hlo for o in operands])
    _checked_shape(Opcode.WHILE, [state], WhileAttributes(condition, body), None)
    return _state.trace.process_while(condition, body, operands)


def bind_conditional(branches: Sequence[HloComputation], index: Value, operands: Sequence[Value]) -> list[Value]:
    """`conditional`: every branch takes one tuple of all operands and returns a tuple; `index`: pred[] or s32[]."""
    branches, operands = tuple(branches), tuple(operands)
    argument = Shape.tuple([o.aval.hlo for o in operands])
    shapes = [index.aval.hlo, *[argument] * len(branches)]
    _checked_shape(Opcode.CONDITIONAL, shapes, ConditionalAttributes(branches), None)
    return _state.trace.process_conditional(branches, index, operands)


@lru_cache(maxsize=4096)
def _inferred_shape(opcode: Opcode, operands: tuple[ShapedArray, ...], attributes: Attributes) -> Shape:
    return _checked_shape(opcode, [o.hlo for o in operands], attributes, None)


def _checked_shape(opcode: Opcode, operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    try:
        return check_shape(opcode, operands, attributes, declared)
    except ShapeError as error:
        located = OperandError(f"{error}\n  at {user_line() or '<unknown>'}")
        located.label = error.label
        raise located from None


# ---- recording HLO


class HloTracer(Tracer):
    """An instruction being recorded."""

    __slots__ = ("instruction",)

    def __init__(self, trace: HloTrace, aval: ShapedArray, instruction: HloInstruction) -> None:
        self._trace = trace
        self.aval = aval
        self.instruction = instruction

    def origin(self) -> str:
        metadata = self.instruction.metadata
        return f"{metadata.source_file}:{metadata.source_line}" if metadata and metadata.source_file else ""


class HloTrace(Trace):
    """Records operations as instructions. Values from outside are captured: one hidden parameter each."""

    def __init__(self, parent: Trace, name: str, description: str = "") -> None:
        self.parent = parent
        self.name = name
        self.parameters: list[HloInstruction] = []
        self.captured: list[Value] = []
        self._description = description
        self._known: dict[int, HloInstruction] = {}
        self._kept: list[Value] = []  # so that the ids in _known stay taken

    def parameter(self, aval: ShapedArray, name: str = "", label: str = "") -> HloTracer:
        """A new parameter, the next in number; `label` is what the user calls it."""
        instruction = make_parameter(len(self.parameters), aval.hlo, name, Metadata(label) if label else None)
        self.parameters.append(instruction)
        return HloTracer(self, aval, instruction)

    def lift(self, value: Value) -> HloInstruction:
        """The instruction that computes `value` here: captures what is not of this trace."""
        if isinstance(value, HloTracer) and value._trace is self:
            return value.instruction
        found = self._known.get(id(value))
        if found is not None:
            return found
        if isinstance(value, Array) and value.aval.size <= MAX_CONSTANT_SIZE:
            instruction = make_constant(Literal(value._view))
        else:
            if isinstance(value, Tracer) and not self._encloses(value._trace):
                raise leaked(value)
            instruction = self.parameter(value.aval, f"captured.{len(self.captured)}").instruction
            self.captured.append(value)
        self._known[id(value)] = instruction
        self._kept.append(value)
        return instruction

    def _encloses(self, trace: Trace) -> bool:
        """True when `trace` is one of those that were current when this one began."""
        outer = self.parent
        while outer is not None and outer is not trace:
            outer = outer.parent
        return outer is trace

    def _add(
        self, opcode: Opcode, operands: Sequence[HloInstruction], attributes: Attributes, shape: Shape
    ) -> HloInstruction:
        metadata = current_metadata(f"{self.name}/{opcode.value}")
        return HloInstruction(opcode, shape, tuple(operands), attributes, "", metadata)

    def _elements(self, result: HloInstruction) -> list[Value]:
        """Tracers of the elements of a tuple."""
        return [
            HloTracer(
                self,
                aval_of_shape(s),
                HloInstruction(
                    Opcode.GET_TUPLE_ELEMENT, s, (result,), GetTupleElementAttributes(k), "", result.metadata
                ),
            )
            for k, s in enumerate(result.shape.elements)
        ]

    def process(
        self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape
    ) -> Value | list[Value]:
        result = self._add(opcode, [self.lift(o) for o in operands], attributes, shape)
        if shape.tuple_shapes is not None:
            return self._elements(result)
        return HloTracer(self, ShapedArray(shape.dimensions, shape.element.dtype), result)

    def process_call(
        self, computation: HloComputation, operands: tuple[Value, ...], composite: Composite | None
    ) -> list[Value]:
        attributes = CallAttributes(computation, composite)
        return self._elements(
            self._add(Opcode.CALL, [self.lift(o) for o in operands], attributes, computation.root.shape)
        )

    def _tuple(self, operands: tuple[Value, ...]) -> HloInstruction:
        shape = Shape.tuple([o.aval.hlo for o in operands])
        return self._add(Opcode.TUPLE, [self.lift(o) for o in operands], NO_ATTRIBUTES, shape)

    def process_while(
        self, condition: HloComputation, body: HloComputation, operands: tuple[Value, ...]
    ) -> list[Value]:
        state = self._tuple(operands)
        return self._elements(self._add(Opcode.WHILE, [state], WhileAttributes(condition, body), state.shape))

    def process_conditional(
        self, branches: tuple[HloComputation, ...], index: Value, operands: tuple[Value, ...]
    ) -> list[Value]:
        argument = self._tuple(operands)
        inputs = [self.lift(index), *[argument] * len(branches)]
        attributes = ConditionalAttributes(branches)
        return self._elements(self._add(Opcode.CONDITIONAL, inputs, attributes, branches[0].root.shape))

    def described(self) -> str:
        return f" while tracing {self._description or self.name}"


class TracedComputation(NamedTuple):
    """What `trace_to_computation` returns."""

    computation: HloComputation
    """Parameters: the given types, then one a captured value; the root a tuple of the results."""
    out_avals: tuple[ShapedArray, ...]
    captured: list[Value]
    """Values from outside: the operands to pass after the ordinary ones."""


def trace_to_computation(
    fun: Callable[[list[Value]], Sequence[Value]],
    avals: Sequence[ShapedArray],
    name: str = "main",
    *,
    parameter_names: Sequence[tuple[str, str]] = (),
    description: str = "",
) -> TracedComputation:
    """Record `fun`, which takes and returns a list of values, on parameters of the types `avals`.

    `parameter_names`: for each, its name in HLO and what the user calls it. `description` says in messages what is
    being traced.
    """
    trace = HloTrace(_state.trace, name, description)
    names = parameter_names or [("", "")] * len(avals)
    with set_current_trace(trace), source_metadata(None):
        results = list(fun([trace.parameter(a, *n) for a, n in zip(avals, names, strict=True)]))
        instructions = tuple([trace.lift(r) for r in results])
    shape = Shape.tuple([i.shape for i in instructions])
    root = HloInstruction(Opcode.TUPLE, shape, instructions)
    computation = make_computation(name, root, trace.parameters)
    return TracedComputation(computation, tuple([r.aval for r in results]), trace.captured)


# ---- repeating a computation


def eval_computation(computation: HloComputation, values: Sequence[Value]) -> list[Value]:
    """Bind each instruction of `computation` under the current trace; the root's leaves.

    `values`: one a parameter; for a computation that takes one tuple, one an element of it.
    Recorded instructions keep the lines of the user's program that the originals carry.
    """
    parameters = computation.parameters
    takes_tuple = len(parameters) == 1 and parameters[0].shape.is_tuple
    assert takes_tuple or len(parameters) == len(values), f"{computation} takes {len(parameters)} values"
    env: dict[HloInstruction, Any] = {}
    before = _state.metadata
    try:
        for instruction in computation.instructions:
            if instruction.opcode is Opcode.PARAMETER:
                env[instruction] = list(values) if takes_tuple else values[instruction.attributes.number]
            else:
                _state.metadata = instruction.metadata or before
                env[instruction] = repeat_instruction(instruction, [env[o] for o in instruction.operands])
    finally:
        _state.metadata = before
    result = env[computation.root]
    return result if isinstance(result, list) else [result]


def repeat_instruction(instruction: HloInstruction, operands: list[Any]) -> Any:
    """Bind `instruction` (no parameter) on other operands: a value, or a list where its HLO value is a tuple.

    An operand that is a tuple in HLO is a list here.
    """
    attributes = instruction.attributes
    match instruction.opcode:
        case Opcode.CONSTANT:
            assert isinstance(attributes, ConstantAttributes)
            array = attributes.literal.array
            return Array(ShapedArray(array.shape, array.dtype), array)
        case Opcode.TUPLE:
            return operands
        case Opcode.GET_TUPLE_ELEMENT:
            return operands[0][attributes.index]
        case Opcode.CALL:
            return bind_call(attributes.to_apply, operands, attributes.composite)
        case Opcode.WHILE:
            return bind_while(attributes.condition, attributes.body, operands[0])
        case Opcode.CONDITIONAL:
            same = all(o is operands[1] for o in operands[1:])
            assert same, f"the branches of {instruction} take different operands"
            return bind_conditional(attributes.branch_computations, operands[0], operands[1])
    if instruction.shape.is_tuple:
        return bind_multi(instruction.opcode, operands, attributes, shape=instruction.shape)
    return bind(instruction.opcode, operands, attributes, shape=instruction.shape)


def takes_one_tuple(computation: HloComputation) -> HloComputation:
    """The same computation on one tuple of its parameters, as while and conditional want it."""
    elements = [p.shape for p in computation.parameters]
    parameter = make_parameter(0, Shape.tuple(elements))
    mapping: dict[HloInstruction, HloInstruction] = {}
    order = [parameter]
    for k, p in enumerate(computation.parameters):
        mapping[p] = HloInstruction(
            Opcode.GET_TUPLE_ELEMENT, p.shape, (parameter,), GetTupleElementAttributes(k), p.name, p.metadata
        )
        order.append(mapping[p])
    for instruction in computation.instructions:
        if instruction.opcode is not Opcode.PARAMETER:
            mapping[instruction] = instruction.with_operands(tuple(mapping[o] for o in instruction.operands))
            order.append(mapping[instruction])
    return HloComputation(computation.name, tuple(order), mapping[computation.root])


def returns_element(computation: HloComputation) -> HloComputation:
    """The same computation with the only element of its root as root: conditions and reducers return no tuple."""
    (root,) = computation.root.operands
    kept = tuple([i for i in computation.instructions if i is not computation.root])
    return HloComputation(computation.name, kept, root)
