"""The tracing core: values, the current trace, and the functions through which every operation goes.

An operation is an HLO opcode with its attributes, or a primitive. `bind(opcode, operands, attributes)` infers the
result's type, then asks the current trace to process it; `bind_call(call, operands)` does so for a primitive. There is
one current trace a thread. At the bottom is EvalTrace, which computes with NumPy at once, below the layers that
`bottom.py` lists; HloTrace (`recording.py`) records into a computation; transformations add further traces. Their
methods set `parent` as the current trace and bind the operations that replace the one they process.

Results with several arrays, and the operands of ops that run computations, are flat lists here. HLO's tuples appear
only inside of computations: the root of a traced computation is always a tuple, and while's and conditional's take one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from typing import Any, cast

import numpy as np

from ..hlo.builder import check_shape, make_computation, make_instruction, make_parameter, make_tuple
from ..hlo.elementary import FUNCTIONS, is_function
from ..hlo.errors import ShapeError
from ..hlo.ir import NO_ATTRIBUTES, Attributes, HloComputation, HloInstruction, Metadata
from ..hlo.opcode import Opcode
from ..hlo.ops.control_flow import CallAttributes, ConditionalAttributes, WhileAttributes
from ..hlo.ops.structure import ConstantAttributes
from ..hlo.shape import Shape
from ..hlo.support.loading import load
from .arrays.array import Array as Array
from .arrays.array import detached
from .arrays.operators import Value as Value
from .arrays.overlay import EXTENDED, overlaid, storage_of, storages
from .aval import ANY_OVER_DEVICES, aval_of_shape
from .aval import ShapedArray as ShapedArray
from .caches import on_clear
from .checks.nan_checks import blame, check_results, fault, is_checking
from .errors import OperandError
from .execution import run_branch, run_call, run_compiled, run_op, run_while
from .functions import run_function
from .layers import LAYERS, Layer, Layers
from .primitive import Call as Call
from .primitive import Primitive as Primitive
from .settings.context import current_context, thread
from .sharding.varying import result_vmas, unified
from .source import placed_metadata, user_metadata
from .tracer import Trace as Trace
from .tracer import Tracer as Tracer
from .tracer import leaked as leaked

_SLOW = frozenset(
    {
        *(Opcode.GATHER, Opcode.SCATTER, Opcode.REDUCE_WINDOW, Opcode.SELECT_AND_SCATTER),
        *(Opcode.CONVOLUTION, Opcode.SORT, Opcode.TOPK, Opcode.REDUCE),
    }
)
"""Ops that the evaluator runs slowly. Among reductions, only those of several arrays."""
_SLICES = frozenset({Opcode.SLICE, Opcode.DYNAMIC_SLICE})
_SPECIAL = _SLOW | _SLICES | FUNCTIONS | {Opcode.WHILE, Opcode.CONDITIONAL}
_TINY = 1024
"""The most elements for which the evaluator is fast enough for any op."""


def _is_worth_a_program(opcode: Opcode, operands: tuple[Value, ...], shape: Shape) -> bool:
    if opcode is Opcode.REDUCE and shape.tuple_shapes is None:
        return False
    return sum([o.aval.size for o in operands]) > _TINY and current_context().backend != "evaluator"


_FREE = frozenset({Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT})
_SHORT = 8
"""Ops of a branch that are as fast one by one as a call of a program is."""
_LARGE = 1 << 14
"""Elements from which two ops are faster when they are fused."""


def _is_worth_a_branch(branch: HloComputation, operands: tuple[Value, ...]) -> bool:
    count = sum([i.opcode not in _FREE for i in branch.instructions])
    if count < 2 or current_context().backend == "evaluator":
        return False
    return count > _SHORT or sum([o.aval.size for o in operands]) > _LARGE


def _evaluate_first(opcode: Opcode, operands: Sequence[Any], attributes: Any, shape: Shape) -> Any:
    """The first operation outside of jit: from now on, `evaluate_op` is the evaluator's. A program that only calls
    jitted functions does not need it."""
    global evaluate_op
    evaluate_op = load("..hlo.evaluator", __package__).evaluate_op
    return evaluate_op(opcode, operands, attributes, shape)


evaluate_op: Callable[..., Any] = _evaluate_first


class EvalTrace(Trace):
    """Computes at once: an op by the evaluator's NumPy call, a primitive by its `evaluate`. The backend compiles
    programs for loops, branches with many ops, ops without a fast NumPy call, and elementary functions
    (`functions.py`). While a layer is on (`bottom.py`), operations go through it first."""

    parent = None

    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    def process(
        self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape
    ) -> Value | list[Value]:
        top = self._layers.top
        if top is not None:
            return top.process(opcode, operands, attributes, shape)  # type: ignore[no-any-return]
        if opcode in _SPECIAL:
            if opcode in FUNCTIONS:
                if is_function(opcode, operands[0].aval.dtype):
                    found = run_function(opcode, [array_of(o) for o in operands], attributes, shape)
                    if found is not None:
                        return found
            elif opcode is Opcode.WHILE:
                return list(run_while(attributes.condition, attributes.body, [array_of(o) for o in operands]))
            elif opcode is Opcode.CONDITIONAL:
                return self._conditional(attributes.branch_computations, operands)
            elif opcode in _SLICES:
                view = evaluate_op(opcode, [array_of(o)._view for o in operands], attributes, shape)
                return Array(aval_of_shape(shape), detached(view))
            elif _is_worth_a_program(opcode, operands, shape):
                results = run_op(opcode, [array_of(o) for o in operands], attributes, shape)
                return results[0] if shape.tuple_shapes is None else list(results)
        result = evaluate_op(opcode, [array_of(o)._view for o in operands], attributes, shape)
        if shape.tuple_shapes is None:
            return Array(ShapedArray(shape.dimensions, shape.element.dtype), result)
        return [Array(aval_of_shape(s), r) for s, r in zip(shape.tuple_shapes, result, strict=True)]

    def process_call(self, call: Call, operands: tuple[Value, ...]) -> list[Value]:
        top = self._layers.top
        if top is not None:
            return top.process_call(call, operands)  # type: ignore[no-any-return]
        return list(call.primitive.evaluate(call, [array_of(o) for o in operands]))

    def run_program(self, computation: HloComputation, arrays: Sequence[Array]) -> list[Array]:
        """The results of a compiled computation."""
        top = self._layers.top
        if top is not None:
            return top.run_program(computation, arrays)  # type: ignore[no-any-return]
        return run_compiled(computation, arrays)

    def process_with_scalar(
        self, opcode: Opcode, x: Array, y: Array, attributes: Attributes, shape: Shape, aval: ShapedArray
    ) -> Array:
        """A binary elementwise op of arrays, one of them a scalar that is broadcast; the result is of type `aval`."""
        top = self._layers.top
        if top is not None:
            return top.process_with_scalar(opcode, x, y, attributes, shape, aval)  # type: ignore[no-any-return]
        if opcode in FUNCTIONS and is_function(opcode, x.aval.dtype):
            found = run_function(opcode, (x, y), attributes, shape)
            if found is not None:
                return found if found.aval is aval else Array.from_buffer(aval, found._buffer)
        return Array(aval, evaluate_op(opcode, [x._view, y._view], attributes, shape))

    def _conditional(self, branches: Sequence[HloComputation], operands: tuple[Value, ...]) -> list[Value]:
        taken = taken_branch(operands[0], len(branches))
        if _is_worth_a_branch(branches[taken], operands):
            return list(run_branch(branches[taken], [array_of(o) for o in operands[1:]]))
        return eval_computation(branches[taken], operands[1:])


def array_of(value: Value) -> Array:
    """`value` as an Array; UnexpectedTracerError for a tracer that outlived its trace."""
    if isinstance(value, Array):
        return value
    raise leaked(value)


def taken_branch(index: Value, count: int) -> int:
    """Which of `count` branches runs. pred: branch 0 when true; s32: the last branch when out of range."""
    chosen = array_of(index)._view
    if chosen.dtype == np.bool_:
        return 0 if chosen else 1
    return int(chosen) if 0 <= chosen < count else count - 1


class CheckingLayer(Layer):
    """Checks results, for `debug_nans` and `debug_infs`."""

    def process(self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape) -> Any:
        result = self.below.process(opcode, operands, attributes, shape)
        context = current_context()
        if is_checking(context):
            found = [array_of(r)._view for r in (result if isinstance(result, list) else [result])]
            kind = fault(found, context)
            if kind is not None and opcode is Opcode.WHILE:
                self._blame_loop(attributes, operands, kind)
            check_results(opcode.value, found, _state.metadata)
        return result

    def process_with_scalar(
        self, opcode: Opcode, x: Array, y: Array, attributes: Attributes, shape: Shape, aval: ShapedArray
    ) -> Any:
        result = self.below.process_with_scalar(opcode, x, y, attributes, shape, aval)
        check_results(opcode.value, [result._view], _state.metadata)
        return result

    def process_call(self, call: Call, operands: tuple[Value, ...]) -> Any:
        results = self.below.process_call(call, operands)
        context = current_context()
        if is_checking(context):
            found = fault([array_of(r)._view for r in results], context)
            if found is not None:
                if isinstance(call.meaning, HloComputation):
                    arrays = [array_of(o)._view for o in operands]
                    blame(call.meaning, arrays, found, context, f"{call.primitive.name} of {call.label}")
                check_results(call.primitive.name, [array_of(r)._view for r in results], _state.metadata)
        return results

    def _blame_loop(self, attributes: WhileAttributes, operands: tuple[Value, ...], kind: str) -> None:
        """Find the operation in the loop's body."""
        parameters = [make_parameter(k, o.aval.hlo) for k, o in enumerate(operands)]
        loop = make_instruction(Opcode.WHILE, [make_tuple(parameters)], attributes)
        views = [array_of(o)._view for o in operands]
        what = f"the loop {attributes.body.name}"
        blame(make_computation("while", loop, parameters), views, kind, current_context(), what)


class _ThreadState(threading.local):
    """The current trace of each thread."""

    def __init__(self) -> None:
        self.trace: Trace = EVAL
        self.direct: bool = True
        """True when a call of a jitted function may run its executable at once: nothing is being traced."""
        self.metadata: Metadata | None = None
        """Overrides the user's line: an instruction that `eval_computation` repeats keeps its first line."""
        self.scope: str = ""
        """The names of the `named_scope` blocks around, each with a slash after it."""
        self.placed: Iterator[int] | None = None
        """Numbers for the instructions that are recorded with their exact places (`exact_places`)."""

    recorder: Any = None
    """The object that defers operations in this thread (`deferral.py`): None, as in most threads, where nothing
    does. `defer_in_all_threads` sets it for threads that have none of their own."""


EVAL = EvalTrace(LAYERS)
"""Below all other traces."""
EVALUATION = EvalTrace(Layers())
"""The evaluation itself, below all layers."""
_state = _ThreadState()


def thread_state() -> _ThreadState:
    """This module's thread-local state, for jit's dispatch."""
    return _state


def defer_in_all_threads(recorder: Any) -> None:
    """Make `recorder` the recorder of all threads that have none of their own; None: they do not defer."""
    _ThreadState.recorder = recorder


def computes_at_once() -> bool:
    """True if an operation of this thread is evaluated now, and nothing else sees it."""
    return _state.direct and LAYERS.top is None


def current_trace() -> Trace:
    """The trace that processes operations of this thread now."""
    return _state.trace


@contextmanager
def set_current_trace(trace: Trace) -> Iterator[None]:
    """Make `trace` current within the block.

    >>> import hloom, hloom.numpy as jnp
    >>> from hloom.extend.core import find_top_trace, set_current_trace
    >>> with set_current_trace(find_top_trace()):
    ...     jnp.sin(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    before, direct = _state.trace, _state.direct
    try:  # no calls: an interrupt, which comes after one, would leave the trace behind
        _state.trace, _state.direct = trace, trace is EVAL
        thread.running = thread.settings if trace is EVAL else None
        yield
    finally:
        _state.trace, _state.direct = before, direct
        thread.running = thread.settings if direct else None
        if trace.programs is not None and trace.parent is before:
            trace.programs = None  # the trace ends, and they refer to values that refer to it: a cycle


@contextmanager
def source_metadata(metadata: Metadata | None) -> Iterator[None]:
    """Within the block, recorded instructions carry `metadata` instead of the user's current line."""
    before = _state.metadata
    _state.metadata = metadata
    try:
        yield
    finally:
        _state.metadata = before


def current_metadata(function: str, op: str) -> Metadata:
    """The metadata of an instruction recorded now: the user's line, or the value of `source_metadata`. Its name: the
    traced function, the scopes, the op."""
    if _state.metadata is not None:
        return _state.metadata
    name = f"{function}/{_state.scope}{op}"
    return user_metadata(name) if _state.placed is None else placed_metadata(name, next(_state.placed))


def places_are_exact() -> bool:
    """True within `exact_places`: a part of the key where computations are kept."""
    return _state.placed is not None


@contextmanager
def exact_places() -> Iterator[None]:
    """Within the block, recorded instructions have `PlacedMetadata`: column, function, and order of recording."""
    before = _state.placed
    _state.placed = count()
    try:
        yield
    finally:
        _state.placed = before


class scope:
    """Within the block, recorded instructions have `name` in their names. "": no names of the blocks around.

    The name of a transformation, as "vmap()", takes the next name into its parentheses, as in JAX: "vmap(layer)".
    """

    __slots__ = ("before", "name")  # a class: each transformation enters one, and a generator costs three times as much

    def __init__(self, name: str) -> None:
        self.name: str = name

    def __enter__(self) -> None:
        before = self.before = _state.scope
        name = self.name
        if not before or not name:
            _state.scope = name and f"{name}/"
            return
        start, hole, end = before.rpartition("()")
        if hole and not end.strip(")/"):
            _state.scope = f"{start}({name}){end}"
        else:
            _state.scope = f"{before}{name}/"

    def __exit__(self, *_: object) -> None:
        _state.scope = self.before


def transposed_name(name: str) -> str:
    """The name of an instruction from the transposition of one called `name`, which belongs to the derivative that
    began here: "transpose(jvp(layer))" for "jvp(layer)"."""
    return _transposed(name, _state.scope.count("jvp("))


@lru_cache(maxsize=1024)
def _transposed(name: str, before: int) -> str:
    """The name with the derivative after `before` other ones transposed. Each call of a gradient asks for the same."""
    start = -1
    for _ in range(before + 1):
        start = name.find("jvp(", start + 1)
        if start < 0:
            return f"transpose({name})"
    end = start + 4
    depth = 1
    while depth and end < len(name):
        depth += {"(": 1, ")": -1}.get(name[end], 0)
        end += 1
    return f"{name[:start]}transpose({name[start:end]}){name[end:]}"


# ---- values that vary from device to device


_varies: list[bool] = []
"""Not empty once a function was mapped over several devices: until then no operation checks whether values vary."""


def track_varying() -> None:
    """From now on operations ask whether values vary along axes of a mesh."""
    if not _varies:
        _varies.append(True)
        ANY_OVER_DEVICES[:] = [True]


def _tracks(trace: Trace | None) -> bool:
    """Whether types say along which axes values vary: where a user's function is traced within `shard_map`. A trace
    that repeats a traced program uses the `pvary` calls of that program."""
    manual = current_context().manual_axes
    if manual is None or not manual.tracks:
        return False
    while trace is not None:
        if trace.tracks_varying is not None:
            return trace.tracks_varying
        trace = trace.parent
    return False


def varying(value: Value, axes: frozenset[Any], manual: Any) -> Value:
    """`value` as one that varies along `axes` too."""
    stored = unified((storage_of(value),), manual, bind_call, axes)[0]
    return overlaid(stored, value.aval.with_vma(stored.aval.vma)) if value.aval.is_extended else stored


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
    result_shape = _inferred_shape(opcode, tuple([o.aval for o in operands]), attributes, shape)
    if result_shape is None:
        return _bind_extended(opcode, operands, attributes, shape)
    trace = _state.trace
    if _varies and _tracks(trace):
        operands = unified(operands, current_context().manual_axes, bind_call)
    result = cast(Value, trace.process(opcode, operands, attributes, result_shape))
    if weak_type is None:
        weak_type = _all_weak(operands)
    return result if result.aval.weak_type is weak_type else trace.with_weak_type(result, weak_type)


def _bind_extended(opcode: Opcode, operands: tuple[Value, ...], attributes: Attributes, shape: Shape | None) -> Value:
    """An op on keys, carried out on their storage."""
    if opcode not in EXTENDED:
        types = ", ".join(o.aval.str_short() for o in operands)
        raise OperandError(f"{opcode.value} does not accept {types}: {EXTENDED.reason(opcode)}")
    return EXTENDED[opcode](opcode, operands, attributes, shape)


_BOOL = np.dtype(np.bool_)


def _all_weak(operands: tuple[Value, ...]) -> bool:
    """Whether a result is weakly typed. Booleans that come together are promoted, and that makes them strong."""
    for operand in operands:  # a loop, because every operation runs it, and it mostly ends at the first operand
        if not operand.aval.weak_type:
            return False
    return len(operands) == 1 or (bool(operands) and operands[0].aval.dtype is not _BOOL)


def eager_with_scalar(opcode: Opcode, x: Array, y: Array, attributes: Attributes) -> Array:
    """A binary elementwise op of concrete arrays, one of them a scalar that NumPy broadcasts. It bypasses the
    traces."""
    shape, aval = _types_with_scalar(opcode, x.aval if x.aval.shape else y.aval, attributes, _all_weak((x, y)))
    return EVAL.process_with_scalar(opcode, x, y, attributes, shape, aval)


@lru_cache(maxsize=4096)
def _types_with_scalar(
    opcode: Opcode, full: ShapedArray, attributes: Attributes, weak: bool
) -> tuple[Shape, ShapedArray]:
    shape = _checked_shape(opcode, [full.hlo, full.hlo], attributes, None)
    return shape, aval_of_shape(shape, weak)


on_clear(_types_with_scalar.cache_clear)


def bind_multi(
    opcode: Opcode, operands: Sequence[Value], attributes: Attributes = NO_ATTRIBUTES, *, shape: Shape | None = None
) -> list[Value]:
    """One operation with a tuple as its HLO result (a reduce of several arrays, rng-bit-generator); strongly typed."""
    operands = tuple(operands)
    if storages(operands) is not operands:
        _bind_extended(opcode, operands, attributes, shape)
    result_shape = _checked_shape(opcode, [o.aval.hlo for o in operands], attributes, shape)
    assert result_shape.is_tuple, f"{opcode} has one result"
    if _varies and _tracks(_state.trace):
        operands = unified(operands, current_context().manual_axes, bind_call)
    return cast("list[Value]", _state.trace.process(opcode, operands, attributes, result_shape))


def bind_declared(
    opcode: Opcode, operands: Sequence[Value], attributes: Attributes, shape: Shape
) -> Value | list[Value]:
    """One operation with a declared result, an array or a tuple: no cache of types keeps the attributes, which may hold
    a user's function."""
    operands = storages(tuple(operands))
    checked = _checked_shape(opcode, [o.aval.hlo for o in operands], attributes, shape)
    return _state.trace.process(opcode, operands, attributes, checked)


def bind_call(call: Call, operands: Sequence[Value]) -> list[Value]:
    """One use of a primitive. A meaning that is a computation takes one array an operand and returns a tuple of arrays.

    Keys become their storage here, for the meaning and for the rules; the caller of `bind_call` overlays the results.
    """
    operands = storages(tuple(operands))
    if isinstance(call.meaning, HloComputation):
        _checked_shape(Opcode.CALL, [o.aval.hlo for o in operands], CallAttributes(call.meaning), None)
    return _state.trace.process_call(call, operands)


def bind_while(condition: HloComputation, body: HloComputation, operands: Sequence[Value]) -> list[Value]:
    """`while`: both computations take one tuple (of the operands' types); `condition` returns pred[]."""
    operands = storages(tuple(operands))
    if _varies and _tracks(_state.trace):
        after = result_vmas(Opcode.WHILE, WhileAttributes(condition, body), [o.aval.vma for o in operands], 0)
        manual = current_context().manual_axes
        operands = tuple([unified((o,), manual, bind_call, v)[0] for o, v in zip(operands, after, strict=True)])
    state = Shape.tuple([o.aval.hlo for o in operands])
    attributes = WhileAttributes(condition, body)
    shape = _checked_shape(Opcode.WHILE, [state], attributes, None)
    return cast("list[Value]", _state.trace.process(Opcode.WHILE, operands, attributes, shape))


def bind_conditional(branches: Sequence[HloComputation], index: Value, operands: Sequence[Value]) -> list[Value]:
    """`conditional`: every branch takes one tuple of all operands and returns a tuple; `index`: pred[] or s32[]."""
    attributes, operands = ConditionalAttributes(tuple(branches)), storages(tuple(operands))
    argument = Shape.tuple([o.aval.hlo for o in operands])
    shapes = [index.aval.hlo, *[argument] * len(attributes.branch_computations)]
    shape = _checked_shape(Opcode.CONDITIONAL, shapes, attributes, None)
    return cast("list[Value]", _state.trace.process(Opcode.CONDITIONAL, (index, *operands), attributes, shape))


@lru_cache(maxsize=4096)
def _inferred_shape(
    opcode: Opcode, operands: tuple[ShapedArray, ...], attributes: Attributes, declared: Shape | None
) -> Shape | None:
    """The result's type, `declared` where the op leaves it open; None if an operand's dtype is extended."""
    if any(o.is_extended for o in operands):
        return None
    return _checked_shape(opcode, [o.hlo for o in operands], attributes, declared)


on_clear(_inferred_shape.cache_clear)


def _checked_shape(opcode: Opcode, operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    try:
        return check_shape(opcode, operands, attributes, declared)
    except ShapeError as error:
        raise OperandError.of(error) from None


# ---- repeating a computation


def run_meaning(call: Call, operands: Sequence[Value]) -> list[Value]:
    """Run the call's meaning, operation by operation, under the current trace."""
    if isinstance(call.meaning, HloComputation):
        return eval_computation(call.meaning, operands)
    return list(call.meaning(list(operands)))


def run_program(call: Call, arrays: Sequence[Array]) -> list[Value]:
    """Run the call's computation as one program: how to evaluate a primitive whose computation says all."""
    return list(run_call(call.computation, arrays))


PLAIN_CALL = Primitive("", evaluate=run_meaning, is_transparent=True)
"""HLO's plain call of a computation."""


def eval_computation(computation: HloComputation, values: Sequence[Value]) -> list[Value]:
    """Bind each instruction of `computation` under the current trace; returns the leaves of the root.

    `values`: one for each parameter; for a computation that takes one tuple, one for each element of it.
    Recorded instructions keep the lines of the user's program that the originals carry.
    """
    values = [v if v is None else storage_of(v) for v in values]  # type: ignore[redundant-expr]  # None: unused
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
            results = bind_call(call_of(attributes), operands)
            return results if instruction.shape.is_tuple else results[0]
        case Opcode.WHILE:
            return bind_while(attributes.condition, attributes.body, operands[0])
        case Opcode.CONDITIONAL:
            same = all(o is operands[1] for o in operands[1:])
            assert same, f"the branches of {instruction} take different operands"
            return bind_conditional(attributes.branch_computations, operands[0], operands[1])
        case Opcode.CUSTOM_CALL:
            return bind_declared(Opcode.CUSTOM_CALL, operands, attributes, instruction.shape)
    if instruction.shape.is_tuple:
        return bind_multi(instruction.opcode, operands, attributes, shape=instruction.shape)
    return bind(instruction.opcode, operands, attributes, shape=instruction.shape)


def call_of(attributes: CallAttributes) -> Call:
    """The use of a primitive that a call instruction holds. A call that comes from HLO text is a plain call."""
    composite = attributes.composite
    if composite is not None and isinstance(composite.rule, Call):
        return composite.rule
    return Call(PLAIN_CALL, attributes.to_apply, composite)
