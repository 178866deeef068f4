"""Recording: a Python function of values becomes an HLO computation.

HloTrace records every operation that is bound while it is current. `Recorder` is the part that it shares with
autodiff's LinearTrace: it turns operations on flat lists of values into instructions on tuples.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from ..hlo.builder import make_computation, make_constant, make_parameter
from ..hlo.effects import has_side_effect
from ..hlo.errors import UnsupportedError
from ..hlo.ir import NO_ATTRIBUTES, Attributes, HloComputation, HloInstruction, Metadata
from ..hlo.literal import Literal
from ..hlo.metadata import line_of
from ..hlo.opcode import Opcode
from ..hlo.ops import SPECS, Trait
from ..hlo.ops.structure import GetTupleElementAttributes
from ..hlo.shape import Shape
from ..hlo.support.loading import load
from .arrays.array import Array, capturing_block, is_younger, on_several
from .arrays.overlay import overlaid_all, storage_of
from .aval import ANY_OVER_DEVICES, ShapedArray, aval_of_shape
from .checks.key_uses import uses_keys_up
from .core import (
    Trace,
    Value,
    current_metadata,
    current_trace,
    eval_computation,
    leaked,
    scope,
    set_current_trace,
    source_metadata,
)
from .primitive import Call
from .settings.context import current_context
from .sharding.varying import result_vmas, vmas_of
from .tracer import Tracer, check_for_leaks


@lru_cache(maxsize=1)
def divisions() -> Any:
    """The rules for types with shardings, which only programs over meshes need."""
    return load(".sharding.divisions", __package__)


MAX_CONSTANT_SIZE = 1
"""Concrete arrays of at most this many elements become constants of the program; larger ones, hidden parameters."""

_MAY_ACT = frozenset(o for o, spec in SPECS.items() if Trait.SIDE_EFFECT in spec.traits) | {
    Opcode.CALL,
    Opcode.CONDITIONAL,
    Opcode.CUSTOM_CALL,
    Opcode.MAP,
    Opcode.WHILE,
}
"""Ops that have side effects, or may run a computation that has."""


def _is_kept(instruction: HloInstruction) -> bool:
    """Whether it is recorded even if nothing uses its result. Uses of keys are while these are watched; passes then
    drop them."""
    return has_side_effect(instruction) or (current_context().debug_key_reuse and uses_keys_up(instruction))


class RecordedTracer(Tracer):
    """An instruction being recorded."""

    __slots__ = ("instruction",)

    instruction: HloInstruction

    def __init__(self, trace: Recorder, aval: ShapedArray, instruction: HloInstruction) -> None:
        self._trace = trace
        self.aval = aval
        self.instruction = instruction

    def origin(self) -> str:
        return line_of(self.instruction.metadata)


    def told_origin(self) -> str:
        metadata = self.instruction.metadata
        if self.instruction.opcode is Opcode.PARAMETER and metadata is not None and metadata.op_name:
            return f"  it is the argument {metadata.op_name}\n"
        return super().told_origin()


class HloTracer(RecordedTracer):
    """A value of an HloTrace."""

    __slots__ = ()

    def argument_names(self) -> list[str]:
        assert isinstance(self._trace, HloTrace), f"{self._trace} records no HLO"
        return self._trace.argument_names(self.instruction)


class Recorder(Trace):
    """A trace that turns operations into instructions."""

    tracer_class: type[RecordedTracer]

    @abstractmethod
    def lift(self, value: Value) -> HloInstruction:
        """The instruction that represents `value` here."""

    @abstractmethod
    def add(
        self, opcode: Opcode, operands: tuple[HloInstruction, ...], attributes: Attributes, shape: Shape
    ) -> HloInstruction:
        """A new instruction."""

    @abstractmethod
    def element(self, result: HloInstruction, index: int, shape: Shape) -> HloInstruction:
        """An element of a tuple."""

    def record(
        self, opcode: Opcode, operands: Sequence[Value], attributes: Attributes, shape: Shape
    ) -> Value | list[Value]:
        """The result of an op on values: a tracer, or a list of them."""
        marked = [o for o in operands if not o.aval.is_plain]
        if shape.tuple_shapes is None:
            result = self.add(opcode, tuple([self.lift(o) for o in operands]), attributes, shape)
            aval = ShapedArray(shape.dimensions, shape.element.dtype)
            if marked:
                (aval,) = self._over_devices(result, operands, [aval])
            return self.tracer_class(self, aval, result)
        inputs: tuple[HloInstruction, ...]
        if opcode is Opcode.WHILE:
            inputs = (self._tuple(operands),)
        elif opcode is Opcode.CONDITIONAL:
            argument = self._tuple(operands[1:])
            inputs = (self.lift(operands[0]), *[argument] * len(attributes.called_computations()))
        else:
            inputs = tuple([self.lift(o) for o in operands])
        result = self.add(opcode, inputs, attributes, shape)
        elements = result.shape.elements
        avals: Sequence[ShapedArray] = [aval_of_shape(s) for s in elements]
        if ANY_OVER_DEVICES:
            avals = self._over_devices(result, operands, avals)
        return [
            self.tracer_class(self, aval, self.element(result, k, s))
            for k, (s, aval) in enumerate(zip(elements, avals, strict=True))
        ]

    def _over_devices(
        self, result: HloInstruction, operands: Sequence[Value], avals: Sequence[ShapedArray]
    ) -> Sequence[ShapedArray]:
        """The types of an instruction's results, with what they say about devices."""
        if current_context().manual_axes is not None:
            vmas = result_vmas(result.opcode, result.attributes, [o.aval.vma for o in operands], len(avals))
            avals = [a.with_vma(v) for a, v in zip(avals, vmas, strict=True)]
        found: Sequence[ShapedArray] = divisions().result_types(
            result, [o.aval for o in operands], avals, bool(self.tracks_varying)
        )
        return found

    def _tuple(self, operands: Sequence[Value]) -> HloInstruction:
        inputs = tuple([self.lift(o) for o in operands])
        return self.add(Opcode.TUPLE, inputs, NO_ATTRIBUTES, Shape.tuple([i.shape for i in inputs]))

    def record_call(self, call: Call, operands: Sequence[Value]) -> list[Value]:
        """A call of a computation."""
        found = self.record(Opcode.CALL, operands, call.hlo_attributes(), call.computation.root.shape)
        assert isinstance(found, list), f"{call.computation} returns no tuple"
        return found


class HloTrace(Recorder):
    """Records operations as instructions. Each value from outside is captured as one hidden parameter."""

    tracer_class = HloTracer

    def __init__(self, parent: Trace, name: str, description: str = "", types_only: bool = False) -> None:
        self.parent = parent
        self.types_only = types_only
        """The computation will not be used: `eval_shape` wants the results' types."""
        self.name = name
        self.block: int = capturing_block()
        """Arrays that are older than this `younger_arrays` block become no constants."""
        self.parameters: list[HloInstruction] = []
        self.captured: list[Value] = []
        self.effects: list[HloInstruction] = []
        """Instructions with side effects, in order. They stay even if nothing uses their results."""
        self.rules_take_references = False
        """Whether a function with a rule of its own was given a reference from outside: the rule may write to it."""
        self.references: dict[Any, list[Any]] = {}
        """References to mutable arrays from outside (`refs.py`): the current value of each, and whether it is written.
        Each is also among the captured values."""
        self._description = description
        self._known: dict[int, HloInstruction] = {}
        self._kept: list[Value] = []  # so that the ids in _known stay taken

    def parameter(self, aval: ShapedArray, name: str = "", label: str = "") -> HloTracer:
        """A new parameter with the next number; `label` is the user's name for it."""
        instruction = make_parameter(len(self.parameters), aval.hlo, name, Metadata(label) if label else None)
        self.parameters.append(instruction)
        return HloTracer(self, aval, instruction)

    def lift(self, value: Value) -> HloInstruction:
        """The instruction that computes `value` here; a value that is not of this trace is captured."""
        if isinstance(value, HloTracer) and value._trace is self:
            return value.instruction
        found = self._known.get(id(value))
        if found is not None:
            return found
        if isinstance(value, Array) and self._is_constant(value):
            instruction = make_constant(Literal(value._view))
        else:
            if isinstance(value, Tracer) and not self._encloses(value._trace):
                raise leaked(value)
            instruction = self.parameter(value.aval, f"captured.{len(self.captured)}").instruction
            self.captured.append(value)
        self._known[id(value)] = instruction
        self._kept.append(value)
        return instruction

    def _is_constant(self, array: Array) -> bool:
        return array.aval.size <= MAX_CONSTANT_SIZE and not on_several(array) and is_younger(array, self.block)

    def staged(self, value: Value) -> Value:
        """A tracer of the instruction that stands for `value`."""
        inner = storage_of(value)
        if isinstance(inner, HloTracer) and inner._trace is self:
            return value
        return overlaid_all([HloTracer(self, inner.aval, self.lift(inner))], [value.aval])[0]

    def argument_names(self, result: HloInstruction) -> list[str]:
        """The labels of the parameters from which `result` is computed, in their order. A captured value has the labels
        of the enclosing function."""
        needed, waiting = {result}, [result]
        while waiting:
            new = [o for o in waiting.pop().operands if o not in needed]
            needed.update(new)
            waiting += new
        outside = {self._known[id(v)]: v for v in self.captured if isinstance(v, Tracer) and id(v) in self._known}
        found: list[str] = []
        for p in self.parameters:
            if p in needed and p.metadata is not None and p.metadata.op_name:
                found.append(p.metadata.op_name)
            elif p in needed and p in outside:
                found += outside[p].argument_names()
        return list(dict.fromkeys(found))

    def captured_reference(self, reference: Any) -> Value:
        """The array of a reference from outside, as a hidden parameter."""
        aval = reference.aval.inner_aval
        tracer = self.parameter(aval.storage, f"captured.{len(self.captured)}")
        self.captured.append(reference)
        return overlaid_all([tracer], [aval])[0]

    def _encloses(self, trace: Trace) -> bool:
        """True when `trace` is one of those that were current when this one began."""
        outer = self.parent
        while outer is not None and outer is not trace:
            outer = outer.parent
        return outer is trace

    def add(
        self, opcode: Opcode, operands: tuple[HloInstruction, ...], attributes: Attributes, shape: Shape
    ) -> HloInstruction:
        metadata = current_metadata(self.name, opcode.value)
        carried = current_context().frontend_attributes
        instruction = HloInstruction(opcode, shape, operands, attributes, "", metadata, carried)
        if opcode in _MAY_ACT and _is_kept(instruction):
            self.effects.append(instruction)
        return instruction

    def element(self, result: HloInstruction, index: int, shape: Shape) -> HloInstruction:
        attributes = GetTupleElementAttributes(index)
        return HloInstruction(Opcode.GET_TUPLE_ELEMENT, shape, (result,), attributes, "", result.metadata)

    def copy(self, computation: HloComputation, values: Sequence[Value]) -> list[Value]:
        """The results of `computation`, which takes separate parameters, on `values`: its instructions are added as
        they are, without checking types and inferring shapes again. A value may be missing (None) if it is not used."""
        found: dict[HloInstruction, HloInstruction] = {}
        for p, value in zip(computation.parameters, values, strict=True):
            if value is not None:
                found[p] = self.lift(value)
        for i in computation.instructions:
            if i.opcode is not Opcode.PARAMETER:
                copied = i.with_operands(tuple([found[o] for o in i.operands]))
                found[i] = copied
                if i.opcode in _MAY_ACT and _is_kept(copied):
                    self.effects.append(copied)
        roots = computation.root.operands
        avals: Sequence[ShapedArray] = [aval_of_shape(r.shape) for r in roots]
        if ANY_OVER_DEVICES:
            avals = self._copied_types(computation, values, avals)
        return [self._copied(found[r], a) for r, a in zip(roots, avals, strict=True)]

    def _copied_types(
        self, computation: HloComputation, values: Sequence[Value | None], avals: Sequence[ShapedArray]
    ) -> Sequence[ShapedArray]:
        given = [aval_of_shape(p.shape) if v is None else v.aval for p, v in zip(computation.parameters, values)]
        if current_context().manual_axes is not None:
            vmas = vmas_of(computation, [a.vma for a in given])
            avals = [a.with_vma(v) for a, v in zip(avals, vmas, strict=True)]
        found: Sequence[ShapedArray] = divisions().types_of(computation, given, avals)
        return found

    def _copied(self, result: HloInstruction, aval: ShapedArray) -> Value:
        if result.opcode is Opcode.CONSTANT:
            return Array(aval, result.attributes.literal.array)
        return HloTracer(self, aval, result)

    def process(
        self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape
    ) -> Value | list[Value]:
        return self.record(opcode, operands, attributes, shape)

    def process_call(self, call: Call, operands: tuple[Value, ...]) -> list[Value]:
        closed, captured = with_computation(call, operands)
        return self.record_call(closed, [*operands, *captured])

    def described(self) -> str:
        return f" while tracing {self._description or self.name}"


LOOKING: list[type[HloTrace]] = []
"""The traces that record a function with the checks of `error_state.py`."""


def with_computation(call: Call, operands: Sequence[Value]) -> tuple[Call, list[Value]]:
    """The call with a computation as its meaning; the outside values that this uses, as further operands."""
    if isinstance(call.meaning, HloComputation):
        return call, []
    avals = [o.aval for o in operands]
    traced = trace_to_computation(call.meaning, avals, call.label, tracks_varying=True)
    return replace(call, meaning=traced.computation, captured=len(traced.captured)), traced.captured


class TracedComputation(NamedTuple):
    """The result of `trace_to_computation`."""

    computation: HloComputation
    """Parameters: one for each given type, then one for each captured value. The root is a tuple of the results."""
    out_avals: tuple[ShapedArray, ...]
    captured: list[Value]
    """Values from outside: the operands to pass after the ordinary ones."""
    written: tuple[Any, ...] = ()
    """References from outside that it writes: their new values are its last results."""
    reads_references: bool = False
    """Whether captured values are those that references from outside had when this was traced."""
    rules_take_references: bool = False
    """Whether rules of users may write to references from outside when gradients are known."""

    @property
    def is_closed(self) -> bool:
        """False if it uses traced values from outside, which another call may not find again."""
        return not self.reads_references and not any(isinstance(v, Tracer) for v in self.captured)


def trace_to_computation(
    fun: Callable[[list[Value]], Sequence[Value]],
    avals: Sequence[ShapedArray],
    name: str = "main",
    *,
    parameter_names: Sequence[tuple[str, str]] = (),
    description: str = "",
    metadata: Metadata | None = None,
    types_only: bool = False,
    keep_references: bool = False,
    tracks_varying: bool = False,
) -> TracedComputation:
    """Record `fun`, which takes and returns a list of values, on parameters of the types `avals`.

    `parameter_names`: for each parameter, its name in HLO and the user's name for it. `description` names the traced
    function in messages. `metadata`: carried by instructions instead of the user's lines.
    `keep_references`: the caller gives references from outside their values, and takes the written values; otherwise a
    write is an error, and the captured values are the current ones.
    `tracks_varying`: `fun` is a user's, not one that repeats a program (`varying.py`).
    """
    looks = keep_references and current_context().looks_for_errors
    trace = (LOOKING[0] if looks else HloTrace)(current_trace(), name, description, types_only)
    trace.tracks_varying = tracks_varying
    names = parameter_names or [("", "")] * len(avals)
    with set_current_trace(trace), source_metadata(metadata), scope(""):
        inputs: list[Value] = [trace.parameter(a.storage, *n) for a, n in zip(avals, names, strict=True)]
        results = list(fun(overlaid_all(inputs, avals)))
        written = tuple([r for r, (_, is_written) in trace.references.items() if is_written])
        if written and not keep_references:
            raise _cannot_write(written[0], name)
        out_avals = tuple([r.aval for r in results])
        results += [trace.references[r][0] for r in written]
        instructions = tuple([trace.lift(storage_of(r)) for r in results])
    shape = Shape.tuple([i.shape for i in instructions])
    root = HloInstruction(Opcode.TUPLE, shape, instructions)
    computation = make_computation(name, root, trace.parameters, trace.effects)
    if current_context().check_tracer_leaks:
        check_for_leaks(trace)
    if not trace.references or keep_references:
        by_rules = trace.rules_take_references
        return TracedComputation(computation, out_avals, trace.captured, written, rules_take_references=by_rules)
    known = {id(r) for r in trace.references}
    now = [v.current() if id(v) in known else v for v in trace.captured]  # type: ignore[attr-defined]
    return TracedComputation(computation, out_avals, now, reads_references=True)


def _cannot_write(reference: Any, name: str) -> Exception:
    return UnsupportedError(
        f"{name} writes to {reference.aval}, a reference to a mutable array from outside, which only functions that "
        f"jit, scan, loops and branches trace can do: Effects not supported here.\n  {reference.origin()}\n  Return "
        "the value, and write it outside."
    )


def run_computation(computation: HloComputation, values: Sequence[Value]) -> list[Value]:
    """As `eval_computation`, for a traced computation of separate parameters: faster where HLO is being recorded."""
    trace = current_trace()
    if not isinstance(trace, HloTrace):
        return eval_computation(computation, values)
    return trace.copy(computation, values)


def stand_in_for(aval: ShapedArray) -> Value | None:
    """A value of a type without elements, while only types are computed; None elsewhere.

    It is a parameter of the outermost such computation, which is never called.
    """
    trace: Trace | None = current_trace()
    while trace is not None and not (isinstance(trace, HloTrace) and trace.types_only):
        trace = trace.parent
    return None if trace is None else overlaid_all([trace.parameter(aval.storage)], [aval])[0]


def is_recording(trace: Trace | None) -> bool:
    """Whether HLO is recorded: an HloTrace is among the current trace and its parents."""
    while trace is not None:
        if isinstance(trace, HloTrace):
            return True
        trace = trace.parent
    return False


def closed_computation(
    fun: Callable[[list[Value]], Sequence[Value]], avals: Sequence[ShapedArray], name: str
) -> HloComputation:
    """A computation of `fun`, which uses no traced values from outside: a loop or branch gets all as operands."""
    traced = trace_to_computation(fun, avals, name)
    assert not traced.captured, f"{name} closes over values: its operands are all there is"
    return traced.computation


def takes_one_tuple(computation: HloComputation) -> HloComputation:
    """The same computation on one tuple of its parameters, as while and conditional require."""
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
            moved = mapping[instruction] = instruction.with_operands(tuple([mapping[o] for o in instruction.operands]))
            order.append(moved)
    return HloComputation(computation.name, tuple(order), mapping[computation.root])


def with_parameters(computation: HloComputation, order: Sequence[int | Shape], name: str) -> HloComputation:
    """The same computation with its parameters in another order. A Shape is one more parameter, which nothing uses."""
    own = computation.parameters
    if list(order) == list(range(len(own))) and name == computation.name:
        return computation
    mapping: dict[HloInstruction, HloInstruction] = {}
    parameters = []
    for number, which in enumerate(order):
        if isinstance(which, Shape):
            parameters.append(make_parameter(number, which))
            continue
        old = own[which]
        if which != number:
            mapping[old] = make_parameter(number, old.shape, old.name, old.metadata)
        parameters.append(mapping.get(old, old))
    instructions = list(parameters)
    for instruction in computation.instructions:
        if instruction.opcode is not Opcode.PARAMETER:
            new = instruction
            if mapping and instruction.operands:
                new = instruction.with_operands(tuple([mapping.get(o, o) for o in instruction.operands]))
                if new is not instruction:
                    mapping[instruction] = new
            instructions.append(new)
    return HloComputation(name, tuple(instructions), mapping.get(computation.root, computation.root))


def returns_element(computation: HloComputation) -> HloComputation:
    """The same computation with the only element of its root as root: conditions and reducers return no tuple."""
    (root,) = computation.root.operands
    kept = tuple([i for i in computation.instructions if i is not computation.root])
    return HloComputation(computation.name, kept, root)
