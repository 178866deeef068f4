"""Parsing: HLO text, as XLA and JAX print it, to an `HloModule`.

Operands with or without types, names with or without `%`, computation headers long or short, computations in any order,
comments, layouts with tiles and memory spaces. Source: XLA's hlo_parser.cc.

What has no meaning on one CPU is read over: the attributes in `INERT_ATTRIBUTES` and `INERT_MODULE_ATTRIBUTES`, fields
of the metadata other than op_name, source_file and source_line, the thread of a computation, types of operands (after
a check), and custom calls that only annotate their operand (`INERT_CUSTOM_CALLS`). Any other attribute or opcode that
is not known is refused by name. All errors are HloParseError, with line, column and what was expected.
"""

from __future__ import annotations

import difflib
import re
from typing import Any

from ..ir import HloModule, InputOutputAlias
from ..opcode import OPCODE_NAMED, Opcode
from ..ops import spec_of
from ..shape import Shape, read_shape
from .attribute_reader import FORMS, read_frontend_attributes, read_metadata
from .attribute_values import read_bool, read_integer, read_integers
from .literals import read_literal
from .resolver import resolve
from .scanner import Scanner
from .source_table import SourceTable
from .syntax import ParsedComputation, ParsedInstruction, ParsedModule, ParsedOperand

INERT_ATTRIBUTES = frozenset(
    (
        "backend_config",  # what XLA's own backends chose; loop trip counts too, which the passes find themselves
        "control-predecessors",  # an order among instructions that depend only on their operands here
        "original_value",
        "origin",
        "output_to_operand_aliasing",  # a permission to share buffers
        "parameter_replication",
        "result_accuracy",  # a permission to be less exact
        "sharding",
        "statistics",
    )
)
INERT_MODULE_ATTRIBUTES = frozenset(
    (
        "alias_passthrough_params",
        "allow_spmd_sharding_propagation_to_output",
        "allow_spmd_sharding_propagation_to_parameters",
        "buffer_donor",  # a permission to reuse a parameter's memory for anything
        "origin_recovery_table",
    )
)
INERT_CUSTOM_CALLS = frozenset(("Sharding", "xla.sdy.FuncResultSharding"))
_NOT_YET = """
batch-norm-grad batch-norm-inference batch-norm-training cholesky convolution custom-call fft gather map ragged-dot
reduce-precision reduce-window rng rng-get-and-update-state scaled-dot scatter select-and-scatter sort
stochastic-convert topk triangular-solve
"""


def parse(text: str, file: str = "<hlo>") -> HloModule:
    """The module that `text` describes. `file` is what errors call it.

    The entry is the computation marked ENTRY, else the last one. Computations that the entry does not reach are
    checked and dropped. HloParseError for text that is no HLO, breaks an op's rule, or needs what hloom lacks.
    """
    scanner = Scanner(text, file)
    return resolve(_Parser(scanner).module(), scanner)


_ARRAY_SHAPE = re.compile(r"\s*+([a-z0-9]+\[[0-9,]*\](?:\{[0-9,:A-Z()*]*\}|(?!\{\s*[0-9:}])))")
_SHAPE_FOLLOWS = re.compile(r"\(|[A-Za-z0-9_]+\[")


class _Parser:
    """Recursive descent, one method a rule of the grammar, without recursion but for tuple shapes."""

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.sources = SourceTable()
        self._shapes: dict[str, Shape] = {}

    def module(self) -> ParsedModule:
        """`HloModule name, key=value, ...`, source tables, computations."""
        scanner = self.scanner
        position = scanner.skip()
        if not scanner.accept_word("HloModule"):
            raise scanner.expected("'HloModule'")
        module = ParsedModule(scanner.name("the name of the module"), position)
        seen: set[str] = set()
        while scanner.accept(","):
            self._module_attribute(module, seen)
        self.sources.read(scanner)
        while not scanner.at_end():
            module.computations.append(self._computation())
        if not module.computations:
            raise scanner.expected("a computation")
        return module

    def _module_attribute(self, module: ParsedModule, seen: set[str]) -> None:
        scanner = self.scanner
        key, position = self._key(seen)
        if key == "is_scheduled":
            module.is_scheduled = read_bool(scanner)
        elif key == "entry_computation_layout":
            module.entry_layout, module.entry_layout_position = self._entry_layout(), position
        elif key == "input_output_alias":
            module.aliases, module.aliases_position = self._aliases(), position
        elif key == "frontend_attributes":
            module.frontend_attributes = read_frontend_attributes(scanner)
        elif key == "replica_count":
            module.replica_count = self._count(position)
        elif key == "num_partitions":
            module.num_partitions = self._count(position)
        elif key in INERT_MODULE_ATTRIBUTES:
            scanner.skip_value()
        else:
            known = "entry_computation_layout, frontend_attributes, input_output_alias or is_scheduled"
            raise scanner.error(f"unknown attribute {key!r} of the module: expected {known}", position)

    def _count(self, position: int) -> int:
        count = read_integer(self.scanner)
        if count < 1:
            raise self.scanner.error(f"{count} devices: expected a positive number", position)
        return count

    def _key(self, seen: set[str]) -> tuple[str, int]:
        """`key=`, and where it stands."""
        position = self.scanner.skip()
        key = self.scanner.word("the key of an attribute")
        if key in seen:
            raise self.scanner.error(f"attribute {key!r} is given twice", position)
        seen.add(key)
        self.scanner.expect("=", f"after {key}")
        return key, position

    def _entry_layout(self) -> tuple[tuple[Shape, ...], Shape]:
        """`{(f32[2]{0}, s32[])->f32[2]{0}}`"""
        self.scanner.expect("{", "to open the entry layout")
        self.scanner.expect("(", "to open the parameters' shapes")
        parameters: list[Shape] = []
        while not self.scanner.peek(")"):
            if parameters:
                self.scanner.expect(",", "or ')' after a shape")
            parameters.append(self._shape())
        self.scanner.expect(")")
        self.scanner.expect("->")
        result = self._shape()
        self.scanner.expect("}", "to close the entry layout")
        return tuple(parameters), result

    def _aliases(self) -> tuple[InputOutputAlias, ...]:
        """`{ {0}: (1, {}, may-alias) }`: output index, parameter, index in the parameter."""
        scanner = self.scanner
        scanner.expect("{", "to open the aliases")
        aliases: list[InputOutputAlias] = []
        while not scanner.peek("}"):
            if aliases:
                scanner.expect(",", "or '}' after an alias")
            output_index = read_integers(scanner)
            scanner.expect(":")
            scanner.expect("(")
            parameter = scanner.integer("the number of a parameter")
            scanner.expect(",")
            parameter_index = read_integers(scanner)
            kind = "may-alias"
            if scanner.accept(","):
                kind = scanner.peek_word()
                if kind not in ("may-alias", "must-alias"):
                    raise scanner.expected("may-alias or must-alias")
                scanner.word("a kind of alias")
            scanner.expect(")", "to close the alias")
            aliases.append(InputOutputAlias(output_index, parameter, parameter_index, kind == "must-alias"))
        scanner.expect("}")
        return tuple(aliases)

    def _computation(self) -> ParsedComputation:
        """`ENTRY %name (x: f32[2]) -> f32[2] {`, or `name {`; instructions; `}`."""
        scanner = self.scanner
        is_entry = scanner.accept_word("ENTRY")
        position = scanner.skip()
        name = scanner.name("a computation")
        signature = self._signature() if scanner.peek("(") else None
        scanner.expect("{", "to open the computation")
        instructions = []
        while not scanner.accept("}"):
            instructions.append(self._instruction())
        if not instructions:
            raise scanner.error(f"computation {name} is empty: expected an instruction", position)
        seen: set[str] = set()
        while scanner.accept(","):
            key, key_position = self._key(seen)
            if key != "execution_thread":
                raise scanner.error(f"unknown attribute {key!r} of a computation", key_position)
            scanner.skip_value()
        return ParsedComputation(name, position, is_entry, signature, instructions)

    def _signature(self) -> tuple[tuple[Shape, ...], Shape]:
        """`(x: f32[2], y: s32[]) -> f32[2]`"""
        scanner = self.scanner
        scanner.expect("(")
        parameters: list[Shape] = []
        while not scanner.peek(")"):
            if parameters:
                scanner.expect(",", "or ')' after a parameter")
            scanner.name("the name of a parameter")
            scanner.expect(":", "before the parameter's shape")
            parameters.append(self._shape())
        scanner.expect(")")
        scanner.expect("->", "before the result's shape")
        return tuple(parameters), self._shape()

    def _instruction(self) -> ParsedInstruction:
        """`ROOT %name = f32[2]{0} add(%x, %y), key=value, ...`"""
        scanner = self.scanner
        start = scanner.skip()
        is_root = scanner.accept_word("ROOT")
        if is_root and scanner.peek("="):  # an instruction called ROOT
            scanner.position, is_root = start, False
        position = scanner.skip()
        name = scanner.name("an instruction or '}'")
        scanner.expect("=", f"after {name}")
        shape = self._shape()
        opcode_position = scanner.skip()
        opcode_name = scanner.word("an opcode")
        if opcode_name == "custom-call":
            return self._annotation(name, position, opcode_position, is_root, shape)
        opcode = OPCODE_NAMED.get(opcode_name)
        if opcode is None:
            raise scanner.error(_unknown_opcode(opcode_name), opcode_position)
        scanner.expect("(", f"after {opcode_name}")
        values: dict[str, Any] = {}
        operands: tuple[ParsedOperand, ...] = ()
        if opcode is Opcode.PARAMETER:
            values["number"] = scanner.integer("the number of the parameter")
        elif opcode is Opcode.CONSTANT:
            values["literal"] = read_literal(scanner, shape)
        else:
            operands = self._operands()
        scanner.expect(")", f"to close the operands of {opcode_name}")
        instruction = ParsedInstruction(name, opcode_position, is_root, shape, opcode, operands, values)
        self._attributes(instruction, opcode)
        return instruction

    def _operands(self) -> tuple[ParsedOperand, ...]:
        """`%x, f32[2]{0} %y`, up to the closing parenthesis."""
        scanner = self.scanner
        operands: list[ParsedOperand] = []
        while not scanner.peek(")"):
            if operands:
                scanner.expect(",", "or ')' after an operand")
            position = scanner.skip()
            shape = self._shape() if _SHAPE_FOLLOWS.match(scanner.text, position) else None
            operands.append(ParsedOperand(scanner.name("the name of an operand"), shape, position))
        return tuple(operands)

    def _attributes(self, instruction: ParsedInstruction, opcode: Opcode) -> None:
        scanner = self.scanner
        form = FORMS[spec_of(opcode).attributes]
        seen: set[str] = set()
        while scanner.accept(","):
            key, position = self._key(seen)
            if key in form.readers:
                instruction.values[key] = form.readers[key](scanner)
            elif key == "metadata":
                instruction.metadata = read_metadata(scanner, self.sources)
            elif key == "frontend_attributes":
                instruction.frontend_attributes = read_frontend_attributes(scanner)
            elif key in INERT_ATTRIBUTES:
                scanner.skip_value()
            else:
                known = ", ".join([*form.readers, "metadata or frontend_attributes"])
                raise scanner.error(f"unknown attribute {key!r} of {opcode.value}: expected {known}", position)
        for key in form.required:
            if key not in instruction.values:
                raise scanner.error(f"{opcode.value} {instruction.name} needs {key}=", instruction.position)

    def _annotation(self, name: str, position: int, opcode: int, is_root: bool, shape: Shape) -> ParsedInstruction:
        """`custom-call(%x), custom_call_target="Sharding", ...`: stands for %x."""
        scanner = self.scanner
        scanner.expect("(", "after custom-call")
        operands = self._operands()
        scanner.expect(")", "to close the operands of custom-call")
        seen: set[str] = set()
        target = ""
        while scanner.accept(","):
            key, _ = self._key(seen)
            if key == "custom_call_target":
                target = scanner.string("the name of the target")
            else:
                scanner.skip_value()
        if target not in INERT_CUSTOM_CALLS or len(operands) != 1:
            raise scanner.error(f"{_unknown_opcode('custom-call')} (its target is {target!r})", opcode)
        return ParsedInstruction(name, position, is_root, shape, None, operands, {})

    def _shape(self) -> Shape:
        """A shape; array shapes that occur again are the same object."""
        match = _ARRAY_SHAPE.match(self.scanner.text, self.scanner.position)
        if match is None:
            return read_shape(self.scanner)
        known = self._shapes.get(match.group(1))
        if known is not None:
            self.scanner.position = match.end()
            return known
        shape = read_shape(self.scanner)
        if self.scanner.position == match.end():
            self._shapes[match.group(1)] = shape
        return shape


def _unknown_opcode(name: str) -> str:
    if re.search(rf"(?<!\S){re.escape(name)}(?!\S)", _NOT_YET):
        return f"HLO op {name!r} is not supported by this version"
    close = difflib.get_close_matches(name, OPCODE_NAMED, 1)
    return f"{name[:40]!r} is no HLO op: expected an opcode{f', perhaps {close[0]!r}' if close else ''}"
