"""Linearisation: run a function once, computing its results and recording the operations on tangents.

Each op's JVP rule runs under a LinearTrace: the trace below computes operations without tangents at once; operations on
tangents are recorded as HLO instructions. Values of the first kind that the second kind uses are the residuals. The
recorded program is linear in the tangents; `transpose` runs it backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..hlo.builder import make_computation, make_constant, make_parameter, make_tuple
from ..hlo.effects import has_side_effect
from ..hlo.ir import Attributes, HloComputation, HloInstruction
from ..hlo.literal import Literal
from ..hlo.opcode import Opcode
from ..hlo.ops.structure import GetTupleElementAttributes
from ..hlo.shape import Shape
from ..hlo.support.records import dataclass
from ..tracer.arrays.array import Array, is_absent, is_younger, on_several
from ..tracer.aval import ShapedArray
from ..tracer.core import (
    Call,
    Trace,
    Value,
    bind_call,
    current_metadata,
    current_trace,
    eval_computation,
    run_meaning,
    scope,
    set_current_trace,
)
from ..tracer.recording import HloTracer, RecordedTracer, Recorder, trace_to_computation, with_computation
from ..tracer.settings.context import current_context
from ..tracer.traced import DerivedCache, jit_call
from ..tracer.tracer import check_for_leaks
from .jvp import FlatFunction, JVPTrace, JVPTracer, moving_mask, parameter_avals
from .tangents import Tangent, Zero


class LinearTracer(RecordedTracer):
    """A tangent: an instruction of the linear program being recorded."""

    __slots__ = ()
    is_linear = True


class LinearTrace(Recorder):
    """Records operations on tangents; operations on anything else go to the parent."""

    parent: Trace
    activity = " while it is differentiated"
    tracer_class = LinearTracer

    def __init__(self, parent: Trace) -> None:
        self.parent = parent
        self.inputs: list[HloInstruction] = []
        self.instructions: list[HloInstruction] = []
        self.residuals: dict[HloInstruction, Value] = {}
        """The parameters that represent values from outside, and these values."""
        self.constants: dict[HloInstruction, Value] = {}
        """Instructions of the linear program that do not depend on tangents, and their values."""
        self._known: dict[int, HloInstruction] = {}
        self._kept: list[Value] = []  # so that the ids in _known stay taken

    def input(self, aval: ShapedArray) -> LinearTracer:
        """A tangent that the linear program takes."""
        instruction = make_parameter(len(self.inputs), aval.hlo)
        self.inputs.append(instruction)
        return LinearTracer(self, aval, instruction)

    def owns(self, value: Value) -> bool:
        return isinstance(value, LinearTracer) and value._trace is self

    def lift(self, value: Value) -> HloInstruction:
        """The instruction of `value`: recorded here, a constant, or a parameter that represents a residual."""
        if isinstance(value, LinearTracer) and value._trace is self:
            return value.instruction
        found = self._known.get(id(value))
        if found is None:
            if isinstance(value, HloTracer) and _is_constant(value.instruction):
                found = value.instruction
                self.constants[found] = value
            else:
                found = make_parameter(len(self.residuals), value.aval.hlo)  # `computation` gives the final number
                self.residuals[found] = value
            self._known[id(value)] = found
            self._kept.append(value)
        return found

    def add(
        self, opcode: Opcode, operands: tuple[HloInstruction, ...], attributes: Attributes, shape: Shape
    ) -> HloInstruction:
        metadata = current_metadata("jvp", opcode.value)
        instruction = HloInstruction(opcode, shape, operands, attributes, "", metadata)
        self.instructions.append(instruction)
        return instruction

    def element(self, result: HloInstruction, index: int, shape: Shape) -> HloInstruction:
        return self.add(Opcode.GET_TUPLE_ELEMENT, (result,), GetTupleElementAttributes(index), shape)

    def process(
        self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape
    ) -> Value | list[Value]:
        if any(self.owns(o) for o in operands):
            return self.record(opcode, operands, attributes, shape)
        with set_current_trace(self.parent):
            return self.parent.process(opcode, operands, attributes, shape)

    def process_call(self, call: Call, operands: tuple[Value, ...]) -> list[Value]:
        """A call in a user's rule may return values that depend on tangents and values that do not: its meaning runs op
        by op, unless its primitive is linear."""
        if any(self.owns(o) for o in operands):
            if not call.primitive.is_linear:
                return run_meaning(call, operands)
            closed, captured = with_computation(call, operands)
            return self.record_call(closed, [*operands, *captured])
        with set_current_trace(self.parent):
            return self.parent.process_call(call, operands)


def _is_constant(instruction: HloInstruction) -> bool:
    """True for values that are cheaper to compute again than to keep: an iota, a constant, a broadcast constant."""
    if instruction.opcode is Opcode.BROADCAST:
        return instruction.operands[0].opcode is Opcode.CONSTANT
    return instruction.opcode in (Opcode.CONSTANT, Opcode.IOTA)


@dataclass(frozen=True, slots=True)
class Linearized:
    """The answer of a linearisation rule: the results, and how to record the effect on tangents.

    The rule itself runs in the trace of the primal values and records nothing.
    """

    results: list[Value]
    moves: tuple[bool, ...]
    """Which results have a tangent that is not zero."""
    record: Callable[[LinearTrace, list[Value]], Sequence[Value]] = lambda linear, directions: ()
    """record(linear trace, tangents of the moving operands) -> tangents of the moving results. Called if any moves."""


LinearizeRule = Callable[[Sequence[Value], Sequence[Tangent], Any, Shape], "Linearized | None"]
"""rule(primals, tangents, attributes, result shape): of the tangents, only which of them are Zero matters. None: the
JVP rule does this case."""

LINEARIZE: dict[Opcode, LinearizeRule] = {}
"""For ops that run computations: one computation computes everything that the primals alone determine, another one is
recorded for the tangents. Other ops are linearised by their JVP rules."""


class LinearizeTrace(JVPTrace):
    """A JVPTrace that records tangents."""

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.linear: LinearTrace = LinearTrace(parent)
        self.rule_trace: LinearTrace = self.linear

    def op_rule(
        self, opcode: Opcode, primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Any, shape: Shape
    ) -> tuple[Any, Any]:
        rule = LINEARIZE.get(opcode)
        if rule is None:
            return super().op_rule(opcode, primals, tangents, attributes, shape)
        with set_current_trace(self.parent):
            found = rule(primals, tangents, attributes, shape)
        if found is None:
            return super().op_rule(opcode, primals, tangents, attributes, shape)
        results, moved = self._recorded(found, tangents)
        return (results, moved) if shape.is_tuple else (results[0], moved[0])

    def call_rule(
        self, call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
    ) -> tuple[list[Value], list[Tangent]]:
        primitive = call.primitive
        if primitive.linearize is None and primitive.jvp is not None:
            return super().call_rule(call, primals, tangents)
        with set_current_trace(self.parent):
            found = (primitive.linearize or linearize_meaning)(call, primals, tangents)
        return self._recorded(found, tangents)

    def _recorded(self, found: Linearized, tangents: Sequence[Tangent]) -> tuple[list[Value], list[Tangent]]:
        directions = [t for t in tangents if not isinstance(t, Zero)]
        moving = iter(found.record(self.linear, directions) if any(found.moves) else ())
        zipped = zip(found.results, found.moves, strict=True)
        return found.results, [next(moving) if m else Zero(r.aval) for r, m in zipped]


@dataclass(frozen=True, slots=True)
class LinearProgram:
    """The linear map of tangents near one point."""

    inputs: list[HloInstruction]
    """One parameter for each input that moves."""
    instructions: list[HloInstruction]
    """In the order in which they were recorded, without parameters and constants."""
    residuals: dict[HloInstruction, Value]
    """The parameters that are not inputs, and the values that they represent."""
    constants: dict[HloInstruction, Value]
    """Other instructions that do not depend on inputs, and their values."""
    outputs: list[HloInstruction | None]
    """Each result's tangent; None where it is zero."""

    def needed(self, also: Sequence[HloInstruction] = ()) -> set[HloInstruction]:
        """The instructions and parameters on which the results depend, and `also` and those on which it depends."""
        needed: set[HloInstruction] = {*also, *(o for o in self.outputs if o is not None)}
        for instruction in reversed(self.instructions):
            if instruction in needed:
                needed.update(instruction.operands)
        return needed

    def computation(self, name: str, block: int = 0) -> tuple[HloComputation, list[Value]]:
        """The program as a computation of the inputs and those residuals that it needs (the second result).

        It returns the tangents that are not zero. Concrete scalars become constants in it. Instructions with side
        effects stay: they act when the program is run, not when it is transposed.

        block: the number of a `younger_arrays` block. Arrays that are older, and traced values that are constants, are
        residuals too. Then two programs of one function have equally many, for any known values: users see them as
        constants of a jaxpr.
        """
        effects = [i for i in self.instructions if i.opcode is Opcode.CALL and has_side_effect(i)]
        needed = self.needed(effects)
        mapping = dict(zip(self.inputs, self.inputs, strict=True))
        kept: list[HloInstruction] = []
        for p, value in self.residuals.items():
            if p not in needed:
                continue
            if isinstance(value, Array) and value.aval.size == 1 and _is_constant_in(value, block):
                mapping[p] = make_constant(Literal(value._view))
            else:
                mapping[p] = make_parameter(len(self.inputs) + len(kept), p.shape)
                kept.append(p)
        values = [self.residuals[p] for p in kept]
        if block:
            for constant, value in self.constants.items():
                if constant in needed:
                    mapping[constant] = make_parameter(len(self.inputs) + len(kept), constant.shape)
                    kept.append(constant)
                    values.append(value)
        for instruction in self.instructions:
            if instruction in needed:
                mapping[instruction] = instruction.with_operands(
                    tuple(mapping.setdefault(o, o) for o in instruction.operands)  # a constant is its own replacement
                )
        root = make_tuple([mapping.setdefault(o, o) for o in self.outputs if o is not None])
        parameters = [mapping[p] for p in (*self.inputs, *kept)]
        acting = [mapping[i] for i in effects]
        return make_computation(name, root, parameters, acting), values


def _is_constant_in(scalar: Array, block: int) -> bool:
    return not is_absent(scalar) and not on_several(scalar) and is_younger(scalar, block)


def linearize_flat(
    fun: FlatFunction, primals: Sequence[Value], moving: Sequence[bool]
) -> tuple[list[Value], LinearProgram]:
    """The results of `fun` at `primals`, and its linear program in the tangents of the inputs that `moving` names."""
    trace = LinearizeTrace(current_trace())
    linear = trace.linear
    inputs = [
        JVPTracer(trace, p, linear.input(p.aval)) if moves else p for p, moves in zip(primals, moving, strict=True)
    ]
    with set_current_trace(trace), scope("jvp()"):
        results = list(fun(inputs))
    if current_context().check_tracer_leaks:
        check_for_leaks(trace)
    outputs, tangents = trace.split(results)
    program = LinearProgram(
        linear.inputs,
        linear.instructions,
        linear.residuals,
        linear.constants,
        [None if isinstance(t, Zero) else linear.lift(t) for t in tangents],
    )
    return outputs, program


def linearized(fun: FlatFunction, primals: Sequence[Value], moving: Sequence[bool], name: str) -> Linearized:
    """The answer of a rule that is a function of values: how `fun`, run here, moves with the inputs that move. The
    linear program is recorded as one call, named `name`."""
    results, program = linearize_flat(fun, primals, moving)
    linear, residuals = program.computation(f"linear_{name}")

    def record(trace: LinearTrace, directions: list[Value]) -> list[Value]:
        return trace.record_call(jit_call(linear, name), [*directions, *residuals])

    return Linearized(results, tuple(o is not None for o in program.outputs), record)


# --- linearised computations


@dataclass(frozen=True, slots=True)
class Residual:
    """Where to find the value of a residual after the primal computation has run."""

    place: str
    """"input" or "result" of the primal computation (extra results included)."""
    index: int


@dataclass(frozen=True, slots=True)
class LinearizedComputation:
    """A computation in two parts: `primal` takes the primals and `captured` and returns the results, then extra
    residuals; `linear` takes the moving inputs' tangents and the residuals and returns the tangents of the results
    that `moves` names."""

    primal: HloComputation
    captured: tuple[Value, ...]
    residuals: tuple[Residual, ...]
    linear: HloComputation
    moves: tuple[bool, ...]

    def residual_values(self, inputs: Sequence[Value], results: Sequence[Value]) -> list[Value]:
        return [inputs[r.index] if r.place == "input" else results[r.index] for r in self.residuals]


_linearized = DerivedCache()


def linearize_computation(computation: HloComputation, moving: tuple[bool, ...]) -> LinearizedComputation:
    """The two parts of `computation` when the inputs that `moving` names have tangents. Made once, as jvp_computation.

    A residual that is already an input or a result of the computation is not returned again.
    """

    def make() -> tuple[LinearizedComputation, bool]:
        parts: list[Any] = []

        def primal_part(values: list[Value]) -> list[Value]:
            results, program = linearize_flat(lambda xs: eval_computation(computation, xs), values, moving)
            linear, residuals = program.computation(f"linear_{computation.name}")
            places = {id(v): Residual("result", k) for k, v in enumerate(results)}
            places.update({id(v): Residual("input", k) for k, v in enumerate(values)})
            extended = list(results)
            for value in residuals:
                if id(value) not in places:
                    places[id(value)] = Residual("result", len(extended))
                    extended.append(value)
            moves = tuple(o is not None for o in program.outputs)
            parts[:] = [tuple(places[id(v)] for v in residuals), linear, moves]
            return extended

        traced = trace_to_computation(primal_part, parameter_avals(computation), computation.name)
        return LinearizedComputation(traced.computation, tuple(traced.captured), *parts), traced.is_closed

    return _linearized.get((computation,), moving, make)


def linearize_meaning(call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]) -> Linearized:
    """The rule of a primitive that has none: a call for results and residuals; one, recorded, for tangents."""
    parts = linearize_computation(call.computation, moving_mask(tangents))
    inputs = [*primals, *parts.captured]
    returned = bind_call(jit_call(parts.primal, call.label), inputs)
    residuals = parts.residual_values(inputs, returned)

    def record(linear: LinearTrace, directions: list[Value]) -> list[Value]:
        return linear.record_call(jit_call(parts.linear, call.label), [*directions, *residuals])

    return Linearized(returned[: len(parts.moves)], parts.moves, record)
