"""Linearisation: run a function once, computing its results and recording what it does to tangents.

Each op's JVP rule runs under a LinearTrace: what does not touch a tangent is computed by the trace below, at once;
what does is recorded as an HLO instruction. The values that cross from the first into the second are the residuals.
What is recorded is linear in the tangents; `transpose` runs it backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ..hlo.builder import make_computation, make_constant, make_parameter, make_tuple
from ..hlo.ir import NO_ATTRIBUTES, Attributes, HloComputation, HloInstruction
from ..hlo.literal import Literal
from ..hlo.opcode import Opcode
from ..hlo.ops.control_flow import CallAttributes, Composite, ConditionalAttributes, WhileAttributes
from ..hlo.ops.structure import GetTupleElementAttributes
from ..hlo.shape import Shape
from ..tracer.array import Array
from ..tracer.aval import ShapedArray, aval_of_shape
from ..tracer.core import (
    HloTracer,
    Trace,
    Tracer,
    Value,
    current_trace,
    eval_computation,
    set_current_trace,
    thread_state,
    trace_to_computation,
)
from ..tracer.source import user_metadata
from .jvp import FlatFunction, JVPTrace, JVPTracer, parameter_avals
from .rules.tables import JVP, LINEARIZE, JvpRule, Tangent, Zero


class LinearTracer(Tracer):
    """A tangent: an instruction of the linear program being recorded."""

    __slots__ = ("instruction",)

    def __init__(self, trace: LinearTrace, aval: ShapedArray, instruction: HloInstruction) -> None:
        self._trace = trace
        self.aval = aval
        self.instruction = instruction

    def origin(self) -> str:
        metadata = self.instruction.metadata
        return f"{metadata.source_file}:{metadata.source_line}" if metadata and metadata.source_file else ""


class LinearTrace(Trace):
    """Records operations on tangents; operations on anything else go to the parent."""

    parent: Trace

    def __init__(self, parent: Trace) -> None:
        self.parent = parent
        self.inputs: list[HloInstruction] = []
        self.instructions: list[HloInstruction] = []
        self.residuals: dict[HloInstruction, Value] = {}
        """The parameters that stand for values from outside, and these values."""
        self.constants: dict[HloInstruction, Value] = {}
        """Instructions that the linear program has of its own although they do not depend on tangents."""
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
        """The instruction of `value`: its own, a constant, or a parameter that stands for a residual."""
        if isinstance(value, LinearTracer) and value._trace is self:
            return value.instruction
        found = self._known.get(id(value))
        if found is None:
            if isinstance(value, HloTracer) and _is_constant(value.instruction):
                found = value.instruction
                self.constants[found] = value
            else:
                found = make_parameter(len(self.residuals), value.aval.hlo)  # numbered anew by `computation`
                self.residuals[found] = value
            self._known[id(value)] = found
            self._kept.append(value)
        return found

    def record(
        self, opcode: Opcode, operands: Sequence[HloInstruction], attributes: Attributes, shape: Shape
    ) -> HloInstruction:
        metadata = thread_state().metadata or user_metadata(f"jvp/{opcode.value}")
        instruction = HloInstruction(opcode, shape, tuple(operands), attributes, "", metadata)
        self.instructions.append(instruction)
        return instruction

    def _elements(self, result: HloInstruction) -> list[Value]:
        return [
            LinearTracer(
                self,
                aval_of_shape(s),
                self.record(Opcode.GET_TUPLE_ELEMENT, (result,), GetTupleElementAttributes(k), s),
            )
            for k, s in enumerate(result.shape.elements)
        ]

    def process(
        self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape
    ) -> Value | list[Value]:
        if not any(self.owns(o) for o in operands):
            with set_current_trace(self.parent):
                return self.parent.process(opcode, operands, attributes, shape)
        result = self.record(opcode, [self.lift(o) for o in operands], attributes, shape)
        if shape.tuple_shapes is not None:
            return self._elements(result)
        return LinearTracer(self, aval_of_shape(shape), result)

    def process_call(
        self, computation: HloComputation, operands: tuple[Value, ...], composite: Composite | None
    ) -> list[Value]:
        """A call by a user's rule may return both what depends on tangents and what does not: it is taken apart."""
        if any(self.owns(o) for o in operands):
            return eval_computation(computation, operands)
        with set_current_trace(self.parent):
            return self.parent.process_call(computation, operands, composite)

    def record_call(
        self, computation: HloComputation, operands: Sequence[Value], composite: Composite | None
    ) -> list[Value]:
        """A call all of whose results are linear in those operands that are tangents."""
        inputs = [self.lift(o) for o in operands]
        return self._elements(
            self.record(Opcode.CALL, inputs, CallAttributes(computation, composite), computation.root.shape)
        )

    def _tuple(self, operands: tuple[Value, ...]) -> HloInstruction:
        shape = Shape.tuple([o.aval.hlo for o in operands])
        return self.record(Opcode.TUPLE, [self.lift(o) for o in operands], NO_ATTRIBUTES, shape)

    def process_while(
        self, condition: HloComputation, body: HloComputation, operands: tuple[Value, ...]
    ) -> list[Value]:
        if not any(self.owns(o) for o in operands):
            with set_current_trace(self.parent):
                return self.parent.process_while(condition, body, operands)
        state = self._tuple(operands)
        return self._elements(self.record(Opcode.WHILE, (state,), WhileAttributes(condition, body), state.shape))

    def process_conditional(
        self, branches: tuple[HloComputation, ...], index: Value, operands: tuple[Value, ...]
    ) -> list[Value]:
        if not any(self.owns(o) for o in operands):
            with set_current_trace(self.parent):
                return self.parent.process_conditional(branches, index, operands)
        argument = self._tuple(operands)
        inputs = [self.lift(index), *[argument] * len(branches)]
        attributes = ConditionalAttributes(branches)
        return self._elements(self.record(Opcode.CONDITIONAL, inputs, attributes, branches[0].root.shape))

    def described(self) -> str:
        return " while it is differentiated" + self.parent.described()


def _is_constant(instruction: HloInstruction) -> bool:
    """True for what is cheaper to make again than to keep: a counter, a number, a number spread over an array."""
    if instruction.opcode is Opcode.BROADCAST:
        return instruction.operands[0].opcode is Opcode.CONSTANT
    return instruction.opcode in (Opcode.CONSTANT, Opcode.IOTA)


class LinearizeTrace(JVPTrace):
    """A JVPTrace whose tangents are recorded. Ops that run computations have rules of their own, in LINEARIZE."""

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.linear = LinearTrace(parent)
        self.rule_trace = self.linear

    def rule(self, opcode: Opcode) -> JvpRule:
        return LINEARIZE.get(opcode) or JVP[opcode]


@dataclass(frozen=True, slots=True)
class LinearProgram:
    """What a function does to tangents near one point."""

    inputs: list[HloInstruction]
    """One parameter for each input that moves."""
    instructions: list[HloInstruction]
    """In the order in which they were recorded, without parameters and constants."""
    residuals: dict[HloInstruction, Value]
    """What parameters stand for that are not inputs."""
    constants: dict[HloInstruction, Value]
    """Other instructions that do not depend on inputs, and their values."""
    outputs: list[HloInstruction | None]
    """Each result's tangent; None where it is zero."""

    def computation(self, name: str) -> tuple[HloComputation, list[Value]]:
        """The program as a computation of the inputs and those residuals that it needs (the second result).

        It returns the tangents that are not zero. Concrete scalars become constants in it.
        """
        needed: set[HloInstruction] = {o for o in self.outputs if o is not None}
        for instruction in reversed(self.instructions):
            if instruction in needed:
                needed.update(instruction.operands)
        mapping = dict(zip(self.inputs, self.inputs, strict=True))
        kept: list[HloInstruction] = []
        for p, value in self.residuals.items():
            if p not in needed:
                continue
            if isinstance(value, Array) and value.aval.size == 1:
                mapping[p] = make_constant(Literal(value._view))
            else:
                mapping[p] = make_parameter(len(self.inputs) + len(kept), p.shape)
                kept.append(p)
        for instruction in self.instructions:
            if instruction in needed:
                mapping[instruction] = instruction.with_operands(
                    tuple(mapping.setdefault(o, o) for o in instruction.operands)  # a constant stands for itself
                )
        root = make_tuple([mapping.setdefault(o, o) for o in self.outputs if o is not None])
        parameters = [mapping[p] for p in (*self.inputs, *kept)]
        return make_computation(name, root, parameters), [self.residuals[p] for p in kept]


def linearize_flat(
    fun: FlatFunction, primals: Sequence[Value], moving: Sequence[bool]
) -> tuple[list[Value], LinearProgram]:
    """The results of `fun` at `primals`, and its linear program in the tangents of the inputs that `moving` names."""
    trace = LinearizeTrace(current_trace())
    linear = trace.linear
    inputs = [
        JVPTracer(trace, p, linear.input(p.aval)) if moves else p for p, moves in zip(primals, moving, strict=True)
    ]
    with set_current_trace(trace):
        results = list(fun(inputs))
    outputs, tangents = trace.split(results)
    program = LinearProgram(
        linear.inputs,
        linear.instructions,
        linear.residuals,
        linear.constants,
        [None if isinstance(t, Zero) else linear.lift(t) for t in tangents],
    )
    return outputs, program


# --- linearised computations


@dataclass(frozen=True, slots=True)
class Residual:
    """Where the value of a residual is found once the primal computation has run."""

    place: str
    """"input" or "result" of the primal computation (extra results included)."""
    index: int


@dataclass(frozen=True, slots=True)
class LinearizedComputation:
    """A computation in two parts: `primal` takes the primals and `captured` and returns the results, then extra
    residuals; `linear` takes the moving inputs' tangents and the residuals and returns the tangents of those results
    that `moves` names."""

    primal: HloComputation
    captured: tuple[Value, ...]
    residuals: tuple[Residual, ...]
    linear: HloComputation
    moves: tuple[bool, ...]

    def residual_values(self, inputs: Sequence[Value], results: Sequence[Value]) -> list[Value]:
        return [inputs[r.index] if r.place == "input" else results[r.index] for r in self.residuals]

    def spread(self, primals_out: Sequence[Value], moving: Sequence[Value]) -> tuple[list[Value], list[Tangent]]:
        """Results and their tangents, from what the two parts returned."""
        tangents = iter(moving)
        results = list(primals_out[: len(self.moves)])
        return results, [next(tangents) if m else Zero(p.aval) for p, m in zip(results, self.moves, strict=True)]


_linearized: WeakKeyDictionary[HloComputation, dict[Any, LinearizedComputation]] = WeakKeyDictionary()


def linearize_computation(computation: HloComputation, moving: tuple[bool, ...]) -> LinearizedComputation:
    """The two parts of `computation` when the inputs that `moving` names have tangents. Made once, as jvp_computation.

    A residual that is an input or a result of the computation anyway is not returned once more.
    """
    made = _linearized.setdefault(computation, {})
    if moving in made:
        return made[moving]
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
    result = LinearizedComputation(traced.computation, tuple(traced.captured), *parts)
    if not any(isinstance(c, Tracer) for c in result.captured):
        made[moving] = result
    return result
