"""Transposition: a linear program backwards, from cotangents of its results to cotangents of its inputs.

The walk is a loop over instructions, without recursion. Cotangents that are zero are absent, so nothing is computed for
inputs that do not affect the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..hlo.ir import HloComputation, HloInstruction, Metadata
from ..hlo.opcode import Opcode
from ..hlo.support.records import dataclass
from ..tracer.aval import aval_of_shape
from ..tracer.core import Call, Value, bind_call, repeat_instruction, source_metadata, transposed_name
from ..tracer.ops import add, zeros
from ..tracer.recording import trace_to_computation
from ..tracer.traced import DerivedCache
from .jvp import parameter_avals
from .linearize import LinearProgram
from .rules.tables import ADD_TO, TRANSPOSE, AddTo, load_rules
from .tangents import Linear, Operand

Cotangent = Any
"""A value; for an instruction with a tuple as its result, a list of values and None (zero)."""


class _Cotangents:
    """The cotangents found so far, summed for each instruction."""

    def __init__(self) -> None:
        self._found: dict[HloInstruction, Cotangent] = {}
        self._parts: dict[HloInstruction, list[Callable[[Value | None], Value]]] = {}

    def add(self, instruction: HloInstruction, cotangent: Cotangent) -> None:
        """Add a value or, for a tuple, a list."""
        if isinstance(cotangent, list):
            for k, element in enumerate(cotangent):
                if element is not None:
                    self.add_element(instruction, k, element)
        else:
            before = self._found.get(instruction)
            self._found[instruction] = cotangent if before is None else add(before, cotangent)

    def add_element(self, instruction: HloInstruction, index: int, cotangent: Value) -> None:
        elements = self._found.setdefault(instruction, [None] * len(instruction.shape.elements))
        before = elements[index]
        elements[index] = cotangent if before is None else add(before, cotangent)

    def add_part(self, instruction: HloInstruction, add_to: Callable[[Value | None], Value]) -> None:
        """Add a cotangent that is zero almost everywhere: `add_to` adds it to the sum of the others, or to zero."""
        self._parts.setdefault(instruction, []).append(add_to)

    def pop(self, instruction: HloInstruction, before: Value | None = None) -> Cotangent:
        """The sum, added to `before`."""
        found = self._found.pop(instruction, None)
        if before is not None:
            found = before if found is None else add(before, found)
        for add_to in self._parts.pop(instruction, ()):
            found = add_to(found)
        return found


def _operand(instruction: HloInstruction, known: Mapping[HloInstruction, Any]) -> Operand | list[Operand]:
    """An operand as a rule receives it: its value or Linear; a list of them for a tuple."""
    value = known.get(instruction)
    if isinstance(value, list):
        shapes = instruction.shape.elements
        return [Linear(aval_of_shape(s)) if v is None else v for v, s in zip(value, shapes, strict=True)]
    if value is not None:
        return value  # type: ignore[no-any-return]
    if instruction.opcode is Opcode.TUPLE:
        elements = [_operand(o, known) for o in instruction.operands]
        assert not any(isinstance(e, list) for e in elements), "a tuple within a tuple"
        return elements  # type: ignore[return-value]
    if instruction.shape.is_tuple:
        return [Linear(aval_of_shape(s)) for s in instruction.shape.elements]
    return Linear(aval_of_shape(instruction.shape))


def _backward(
    instructions: Sequence[HloInstruction], known: Mapping[HloInstruction, Any], cotangents: _Cotangents
) -> None:
    """Carry `cotangents` to the parameters. `known` has the value of each instruction that is not linear; for a tuple,
    a list with None for the elements that are linear."""
    load_rules()
    for instruction in reversed(instructions):
        opcode = instruction.opcode
        if opcode is Opcode.PARAMETER or opcode is Opcode.CONSTANT:
            continue
        ct = cotangents.pop(instruction)
        if ct is None:
            continue
        if opcode is Opcode.GET_TUPLE_ELEMENT:
            cotangents.add_element(instruction.operands[0], instruction.attributes.index, ct)
        elif opcode is Opcode.TUPLE:
            for operand, element in zip(instruction.operands, ct, strict=True):
                if element is not None and isinstance(_operand(operand, known), Linear):
                    cotangents.add(operand, element)
        else:
            operands: list[Any] = [_operand(o, known) for o in instruction.operands]
            add_to = ADD_TO.get(opcode)
            if add_to is not None and isinstance(operands[0], Linear):
                cotangents.add_part(instruction.operands[0], _adding(add_to, ct, operands, instruction))
                continue
            with source_metadata(_backwards(instruction)):
                found = TRANSPOSE[opcode](ct, operands, instruction.attributes, instruction.shape)
                for place, operand, part in zip(instruction.operands, operands, found, strict=True):
                    if part is not None and isinstance(operand, (Linear, list)):
                        cotangents.add(place, part)


def _adding(
    rule: AddTo, ct: Value, operands: Sequence[Operand], instruction: HloInstruction
) -> Callable[[Value | None], Value]:
    def add_to(before: Value | None) -> Value:
        with source_metadata(_backwards(instruction)):
            return rule(before, ct, operands, instruction.attributes, instruction.shape)

    return add_to


def _backwards(instruction: HloInstruction) -> Metadata | None:
    """The user's line of the instruction, under a name that marks it as transposed."""
    metadata = instruction.metadata
    return None if metadata is None else _renamed(metadata, transposed_name(metadata.op_name))


@lru_cache(maxsize=4096)
def _renamed(metadata: Metadata, name: str) -> Metadata:
    """The same place under another name, which several instructions of a line have, and each trace of it again."""
    return replace(metadata, op_name=name)


def transpose_program(program: LinearProgram, cotangents: Sequence[Value | None]) -> list[Value | None]:
    """The cotangents of the program's inputs from its results' cotangents; None is zero, in and out."""
    sums = _Cotangents()
    for output, ct in zip(program.outputs, cotangents, strict=True):
        if output is not None and ct is not None:
            sums.add(output, ct)
    _backward(program.instructions, {**program.residuals, **program.constants}, sums)
    return [sums.pop(i) for i in program.inputs]


def transpose_flat(
    computation: HloComputation,
    operands: Sequence[Operand],
    cotangents: Sequence[Value | None],
    before: Sequence[Value | None] | None = None,
) -> list[Value | None]:
    """The cotangents of `computation`'s Linear operands from its results' cotangents; None is zero, in and out.

    Instructions that do not depend on Linear operands are computed forwards first. `operands`: one for each parameter;
    for a computation that takes one tuple, one for each element of it. `before`: for each parameter, the value that its
    cotangent is added to; not for a computation that takes one tuple.
    """
    parameters = computation.parameters
    takes_tuple = len(parameters) == 1 and parameters[0].shape.is_tuple
    given = [None if isinstance(o, Linear) else o for o in operands]
    known: dict[HloInstruction, Any] = {}
    for instruction in computation.instructions:
        opcode = instruction.opcode
        if opcode is Opcode.PARAMETER:
            value: Any = given if takes_tuple else given[instruction.attributes.number]
        elif opcode is Opcode.TUPLE:
            value = [known.get(o) for o in instruction.operands]
        elif opcode is Opcode.GET_TUPLE_ELEMENT:
            elements = known.get(instruction.operands[0])
            value = None if elements is None else elements[instruction.attributes.index]
        else:
            inputs = [known.get(o) for o in instruction.operands]
            fixed = all(i is not None and not (isinstance(i, list) and None in _identities(i)) for i in inputs)
            value = None
            if fixed:
                with source_metadata(instruction.metadata):
                    value = repeat_instruction(instruction, inputs)
        if value is not None:
            known[instruction] = value
    sums = _Cotangents()
    sums.add(computation.root, list(cotangents))
    _backward(computation.instructions, known, sums)
    if takes_tuple:
        found = sums.pop(parameters[0]) or [None] * len(operands)
    else:
        found = [sums.pop(p, b) for p, b in zip(parameters, before or [None] * len(parameters), strict=True)]
    return [f if isinstance(o, Linear) else None for f, o in zip(found, operands, strict=True)]


def _identities(values: Sequence[Any]) -> list[Any]:
    """None for None, True for anything else: comparing arrays with `in` would compare their elements."""
    return [None if v is None else True for v in values]


# --- transposed computations


@dataclass(frozen=True, slots=True)
class TransposedComputation:
    """It takes the operands that are not Linear, the cotangents that are not zero, and `captured`; it returns the
    cotangents of those Linear operands that `moves` names."""

    computation: HloComputation
    moves: tuple[bool, ...]
    """One entry for each operand of the computation that was transposed."""
    captured: tuple[Value, ...]

    def unpack(self, results: Sequence[Value]) -> list[Value | None]:
        found = iter(results)
        return [next(found) if m else None for m in self.moves]


_transposed = DerivedCache()


def transpose_computation(
    computation: HloComputation,
    linear: tuple[bool, ...],
    nonzero: tuple[bool, ...],
    instantiated: tuple[bool, ...] | None = None,
) -> TransposedComputation:
    """`computation` transposed: `linear` marks the operands in which it is linear, `nonzero` the results that have
    cotangents. Operands that `instantiated` names get a cotangent even if it is zero. Made once, as jvp_computation.
    """

    def make() -> tuple[TransposedComputation, bool]:
        avals = parameter_avals(computation)
        out_avals = [aval_of_shape(s) for s in computation.root.shape.elements]
        moves: tuple[bool, ...] = ()

        def backwards(values: list[Value]) -> list[Value]:
            nonlocal moves
            given = iter(values)
            operands = [Linear(a) if is_linear else next(given) for a, is_linear in zip(avals, linear, strict=True)]
            cotangents = [next(given) if n else None for n in nonzero]
            found = transpose_flat(computation, operands, cotangents)
            if instantiated is not None:
                found = [zeros(a) if f is None and n else f for f, a, n in zip(found, avals, instantiated, strict=True)]
            moves = tuple(f is not None for f in found)
            return [f for f in found if f is not None]

        inputs = [a for a, is_linear in zip(avals, linear, strict=True) if not is_linear]
        inputs += [a for a, n in zip(out_avals, nonzero, strict=True) if n]
        traced = trace_to_computation(backwards, inputs, f"transpose_{computation.name}")
        return TransposedComputation(traced.computation, moves, tuple(traced.captured)), traced.is_closed

    return _transposed.get((computation,), (linear, nonzero, instantiated), make)


def transpose_call(
    call: Call, cts: Sequence[Value | None], operands: Sequence[Operand], again: Callable[[HloComputation], Call]
) -> Sequence[Value | None]:
    """The cotangents of a call's operands, by a call of its computation transposed, which `again` makes."""
    linear = tuple(isinstance(o, Linear) for o in operands)
    back = transpose_computation(call.computation, linear, tuple(ct is not None for ct in cts))
    known = [o for o in operands if not isinstance(o, Linear)]
    given = [ct for ct in cts if ct is not None]
    return back.unpack(bind_call(again(back.computation), [*known, *given, *back.captured]))
