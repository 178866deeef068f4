"""From the parser's records to the IR: resolves names, checks shapes, chooses the entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..builder import make_instruction, with_unique_names
from ..errors import HloParseError, ShapeError
from ..ir import BufferDonor, HloComputation, HloInstruction, HloModule, InputOutputAlias
from ..layout import Layout
from ..opcode import Opcode
from ..ops import spec_of
from ..shape import Shape
from .attributes import form_of
from .codec import ComputationName
from .common_attributes import read_composite
from .scanner import Scanner
from .syntax import ParsedComputation, ParsedInstruction, ParsedModule, ParsedOperand

_SHOWN = 20
MAX_CALL_DEPTH = 100
"""The deepest nesting of calls: more than programs need, few enough for recursive evaluation."""


def resolve(module: ParsedModule, scanner: Scanner) -> HloModule:
    """The module made of the parts that `scanner` read; it knows the positions for errors."""
    return _Resolver(module, scanner).module()


class _Resolver:
    def __init__(self, parsed: ParsedModule, scanner: Scanner) -> None:
        self.parsed = parsed
        self.scanner = scanner
        self._parsed_by_name: dict[str, ParsedComputation] = {}
        self._built: dict[str, HloComputation] = {}

    def module(self) -> HloModule:
        entry: ParsedComputation | None = None
        for computation in self.parsed.computations:
            if computation.name in self._parsed_by_name:
                message = f"two computations are called {computation.name}"
                raise self._error(message, computation.position, "module_c1")
            self._parsed_by_name[computation.name] = computation
            if computation.is_entry:
                if entry is not None:
                    raise self._error(f"both {entry.name} and {computation.name} are ENTRY", computation.position)
                entry = computation
        entry = entry or self.parsed.computations[-1]
        for name in self._callees_first():
            self._built[name] = self._computation(self._parsed_by_name[name])
        parameter_layouts, result_layouts = self._entry_layouts(self._built[entry.name])
        module = HloModule(
            self.parsed.name,
            self._built[entry.name],
            is_scheduled=self.parsed.is_scheduled,
            entry_parameter_layouts=parameter_layouts,
            entry_result_layouts=result_layouts,
            frontend_attributes=self.parsed.frontend_attributes,
            buffer_donors=self._donors(self._built[entry.name]),
            replica_count=self.parsed.replica_count,
            num_partitions=self.parsed.num_partitions,
            annotations=tuple(self.parsed.annotations.items()),
        )
        return with_unique_names(replace(module, input_output_aliases=self._aliases(module)))

    def _error(self, message: str, position: int, label: str = "syntax") -> HloParseError:
        """`label`: the violated rule of the verifier or of the op; the message ends with it."""
        return self.scanner.error(message if label == "syntax" else f"{message} [{label}]", position, label)

    def _callees_first(self) -> list[str]:
        """The names of all computations, each after those that it calls. Without recursion: text may be deep."""
        depth: dict[str, int] = {}
        for start in self._parsed_by_name:
            path: dict[str, None] = {}
            stack: list[tuple[str, bool]] = [(start, False)]
            while stack:
                name, callees_are_done = stack.pop()
                if name in depth:
                    continue
                called = [c for i in self._parsed_by_name[name].instructions for c in i.called()]
                if callees_are_done:
                    del path[name]
                    depth[name] = 1 + max((depth[c.name] for c in called), default=0)
                    if depth[name] > MAX_CALL_DEPTH:
                        message = f"calls are nested deeper than {MAX_CALL_DEPTH}"
                        raise self._error(message, called[0].position, "module_c3")
                    continue
                path[name] = None
                stack.append((name, True))
                for reference in called:
                    if reference.name not in self._parsed_by_name:
                        raise self._error(
                            f"expected the name of a computation, but there is no {reference.name}",
                            reference.position,
                        )
                    if reference.name in path:
                        raise self._error(
                            f"computation {reference.name} calls itself, directly or through others",
                            reference.position,
                            "module_c3",
                        )
                    if reference.name not in depth:
                        stack.append((reference.name, False))
        return list(depth)

    def _computation(self, parsed: ParsedComputation) -> HloComputation:
        by_name: dict[str, HloInstruction] = {}
        instructions: list[HloInstruction] = []
        root: HloInstruction | None = None
        for item in parsed.instructions:
            if item.name in by_name:
                message = f"two instructions of {parsed.name} are called {item.name}"
                raise self._error(message, item.position, "module_c2")
            operands = self._operands(item.operands, by_name)
            self._operands(item.predecessors, by_name)
            instruction = self._instruction(item, operands)
            instructions.append(instruction)
            by_name[item.name] = instruction
            if item.is_root:
                if root is not None:
                    raise self._error(f"computation {parsed.name} has a second ROOT", item.position)
                root = instruction
        name = parsed.name.partition(" ")[0]  # a name with a space was made up by the parser
        computation = HloComputation(name, tuple(instructions), root or instruction)
        self._check_parameters(parsed, computation)
        self._check_signature(parsed, computation)
        return computation

    def _operands(
        self, references: tuple[ParsedOperand, ...], by_name: dict[str, HloInstruction]
    ) -> tuple[HloInstruction, ...]:
        operands = []
        for reference in references:
            operand = by_name.get(reference.name)
            if operand is None:
                raise self._error(
                    f"expected the name of an earlier instruction, but there is no {reference.name}",
                    reference.position,
                    "computation_c2",
                )
            if reference.shape is not None and not reference.shape.compatible(operand.shape):
                raise self._error(
                    f"{reference.name} is {operand.shape}, not {reference.shape}",
                    reference.position,
                )
            operands.append(operand)
        return tuple(operands)

    def _instruction(self, item: ParsedInstruction, operands: tuple[HloInstruction, ...]) -> HloInstruction:
        opcode = item.opcode
        self._check_wrapped(item, operands)
        values = {key: self._resolved(value) for key, value in item.values.items()}
        frontend_attributes = item.frontend_attributes
        try:
            if values.pop("is_composite", False):
                values["is_composite"], frontend_attributes = read_composite(frontend_attributes)
            attributes = form_of(spec_of(opcode).attributes).build(values, opcode.value)
            attributes = attributes.as_read([o.shape for o in operands])
        except ValueError as error:
            raise self._error(str(error), item.position) from None
        try:
            return make_instruction(
                opcode,
                operands,
                attributes,
                item.shape,
                name=item.given_name,
                metadata=item.metadata,
                frontend_attributes=frontend_attributes,
                annotations=tuple(item.annotations.items()),
            )
        except ShapeError as error:
            raise self.scanner.error(str(error), item.position, error.label) from error

    def _check_wrapped(self, item: ParsedInstruction, operands: tuple[HloInstruction, ...]) -> None:
        """`negate-done` must belong to a `negate-start`."""
        if item.wrapped is None or item.opcode is Opcode.ASYNC_START:
            return
        start = operands[0] if operands else None
        while start is not None and start.opcode is Opcode.ASYNC_UPDATE:
            start = start.operands[0]
        computation = start.attributes.calls if start is not None and start.opcode is Opcode.ASYNC_START else None
        if computation is None or computation.root.opcode is not item.wrapped:
            suffix = "done" if item.opcode is Opcode.ASYNC_DONE else "update"
            message = f"{item.wrapped.value}-{suffix} needs what {item.wrapped.value}-start gave"
            raise self._error(message, item.position, f"{item.opcode.value}_c1")

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, ComputationName):
            return self._built[value.name]
        if isinstance(value, tuple) and value and isinstance(value[0], ComputationName):
            return tuple(self._built[item.name] for item in value)
        return value

    def _check_parameters(self, parsed: ParsedComputation, computation: HloComputation) -> None:
        numbers = [p.attributes.number for p in computation.parameters]
        if numbers != list(range(len(numbers))):
            shown = str(numbers) if len(numbers) <= _SHOWN else f"{str(numbers[:_SHOWN])[:-1]}, ...]"
            message = f"the parameters of {parsed.name} are numbered {shown}: expected 0 to {len(numbers) - 1}"
            raise self._error(message, parsed.position, "computation_c3")

    def _check_signature(self, parsed: ParsedComputation, computation: HloComputation) -> None:
        if parsed.signature is None:
            return
        parameters, result = parsed.signature
        found = [p.shape for p in computation.parameters]
        if len(found) != len(parameters) or not all(a.compatible(b) for a, b in zip(found, parameters)):
            raise self._error(
                f"computation {parsed.name} says that it takes ({', '.join(map(str, parameters))}), "
                f"but its parameters are ({', '.join(map(str, found))})",
                parsed.position,
            )
        if not computation.root.shape.compatible(result):
            raise self._error(
                f"computation {parsed.name} says that it returns {result}, but its root is {computation.root.shape}",
                parsed.position,
            )

    def _entry_layouts(self, entry: HloComputation) -> tuple[tuple[Layout | None, ...], tuple[Layout | None, ...]]:
        """The layouts of `entry_computation_layout`, by default the instructions' own: None for a default one, if the
        instruction has it too."""
        own, own_result = tuple(p.shape for p in entry.parameters), entry.root.shape
        parameters, result = own, own_result
        if self.parsed.entry_layout is not None:
            given, given_result = self.parsed.entry_layout
            if len(given) != len(parameters) or not all(
                a.compatible(b) for a, b in zip((*given, given_result), (*parameters, result))
            ):
                types = f"({', '.join(map(str, parameters))})->{result}"
                message = f"the layout does not fit the entry computation: expected one of {types}"
                raise self._error(message, self.parsed.entry_layout_position, "module_c5")
            parameters, result = given, given_result
        return _unusual(parameters, own), _unusual((result,), (own_result,))

    def _aliases(self, module: HloModule) -> tuple[InputOutputAlias, ...]:
        """The aliases, each of a leaf of the result and one of a parameter, of one size; no leaf twice."""
        outputs: set[tuple[int, ...]] = set()
        inputs: set[tuple[int, tuple[int, ...]]] = set()
        for alias in self.parsed.aliases:
            output = _leaf(module.entry_result_shape, alias.output_index)
            source = (alias.parameter, alias.parameter_index)
            parameter = None
            if 0 <= alias.parameter < len(module.entry.parameters):
                parameter = _leaf(module.entry_parameter_shapes[alias.parameter], alias.parameter_index)
            if output is None or parameter is None or parameter.byte_size != output.byte_size:
                message = f"an alias of output {list(alias.output_index)} needs a parameter of its size"
                if output is not None and parameter is not None:
                    given = f"{parameter.to_text()} {parameter.byte_size}"
                    message += f" in memory: {output.to_text()} has {output.byte_size} bytes, {given}"
                raise self._error(message, self.parsed.aliases_position, "module_c4")
            if alias.output_index in outputs or source in inputs:
                message = "an output or a parameter is aliased twice"
                raise self._error(message, self.parsed.aliases_position, "module_c4")
            outputs.add(alias.output_index)
            inputs.add(source)
        return self.parsed.aliases

    def _donors(self, entry: HloComputation) -> tuple[BufferDonor, ...]:
        """The buffer donors, each a leaf of a parameter, none twice."""
        for donor in self.parsed.donors:
            known = 0 <= donor.parameter < len(entry.parameters)
            if not known or _leaf(entry.parameters[donor.parameter].shape, donor.parameter_index) is None:
                message = f"buffer donor ({donor.parameter}, {list(donor.parameter_index)}) is no leaf of a parameter"
                raise self._error(message, self.parsed.donors_position, "module_c6")
        if len(set(self.parsed.donors)) != len(self.parsed.donors):
            raise self._error("a buffer donor is named twice", self.parsed.donors_position, "module_c6")
        return self.parsed.donors


def _unusual(shapes: Sequence[Shape], own: Sequence[Shape]) -> tuple[Layout | None, ...]:
    """The layout of each leaf, or None if it and the instruction's layout are the default; () if all are."""
    pairs = [pair for a, b in zip(shapes, own, strict=True) for pair in zip(a.leaves(), b.leaves(), strict=True)]
    plain = [all(leaf.array_layout.is_row_major for leaf in pair) for pair in pairs]
    return () if all(plain) else tuple(None if p else a.layout for p, (a, _) in zip(plain, pairs, strict=True))


def _leaf(shape: Shape, index: tuple[int, ...]) -> Shape | None:
    """The array at `index` in `shape`, or None."""
    for i in index:
        if shape.tuple_shapes is None or not 0 <= i < len(shape.tuple_shapes):
            return None
        shape = shape.tuple_shapes[i]
    return shape if shape.is_array else None
