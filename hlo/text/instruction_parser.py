"""Parsing the instructions of computations: `ROOT %name = f32[2]{0} add(%x, %y), key=value, ...`

Other forms that XLA's text allows are rewritten to this one here, so that no other file needs to know them:

* an omitted type that operands and attributes determine: `y = negate(x)`
* operands that are instructions themselves: `add(negate(x), y)`
* an element of a tuple as an operand: `add(pair#0, pair#1)`
* constants of tuple type: `constant((1, {2, 3}))` is a tuple of constants
* a computation instead of its name: `to_apply={ ... }`
* asynchronous sugar: `negate-start(x)` is async-start of a computation that holds the negate

Source: ParseInstructionList and CreateInstruction of XLA's hlo_parser.cc.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from ..opcode import OPCODE_NAMED, Opcode
from ..ops import spec_of
from ..shape import Shape, read_shape
from .attributes import Form, form_of
from .codec import Codec, ComputationName
from .codecs import COMPUTATION, COMPUTATIONS, read_computation
from .common_attributes import ANNOTATIONS, OPCODE_ANNOTATIONS, read_frontend_attributes, read_metadata
from .literals import read_literal, refuse_elided
from .scanner import Scanner
from .source_table import SourceTable
from .syntax import ParsedComputation, ParsedInstruction, ParsedOperand

MAX_NESTING = 64
"""The deepest nesting of instructions in operands and computations in attributes: more than any program has, few enough
for recursion."""

_ARRAY_SHAPE = re.compile(r"\s*+([a-z0-9]+\[[0-9,]*\](?:\{[0-9,:A-Z()*]*\}|(?!\{\s*[0-9:}])))")
_SHAPE_FOLLOWS = re.compile(r"\(|[A-Za-z0-9_]+\s*\[|b\s*\(")
_NEEDS_TYPE = frozenset(
    (
        *(Opcode.ASYNC_DONE, Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.BITCAST, Opcode.BITCAST_CONVERT),
        *(Opcode.BROADCAST, Opcode.CONSTANT, Opcode.CONVERT, Opcode.CUSTOM_CALL, Opcode.DYNAMIC_RESHAPE),
        *(Opcode.FUSION, Opcode.INFEED, Opcode.IOTA, Opcode.OUTFEED, Opcode.PARAMETER, Opcode.RECV, Opcode.RESHAPE),
        *(Opcode.RNG, Opcode.RNG_BIT_GENERATOR, Opcode.RNG_GET_AND_UPDATE_STATE, Opcode.STOCHASTIC_CONVERT),
    )
)
"""The opcodes with a result type that the operands do not determine: it must be written."""
_ASYNC_SUFFIXES = {"-start": Opcode.ASYNC_START, "-update": Opcode.ASYNC_UPDATE, "-done": Opcode.ASYNC_DONE}
_NEVER_WRAPPED = frozenset((*_ASYNC_SUFFIXES.values(), Opcode.PARAMETER, Opcode.CONSTANT))


class InstructionParser:
    """Recursive descent, one method for each rule of the grammar."""

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.sources: SourceTable = SourceTable()
        self.inner: list[ParsedComputation] = []
        """Computations without a name, in the order in which they are found."""
        self._shapes: dict[str, Shape] = {}
        self._instructions: list[ParsedInstruction] = []
        self._elements: set[str] = set()
        """Elements of tuples in the current computation that are instructions already, e.g. `pair#0`."""
        self._made_up = 0
        self._depth = 0

    def body(self, name: str, position: int) -> list[ParsedInstruction]:
        """`{`, the instructions of computation `name`, `}`."""
        scanner = self.scanner
        outside = self._instructions, self._elements
        self._instructions, self._elements = [], set()
        scanner.expect("{", "to open the computation")
        while not scanner.accept("}"):
            self._instruction()
        if not self._instructions:
            raise scanner.error(f"computation {name} is empty: expected an instruction", position)
        instructions = self._instructions
        self._instructions, self._elements = outside
        return instructions

    def shape(self) -> Shape:
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

    def at_shape(self) -> bool:
        """True if a shape comes next."""
        return _SHAPE_FOLLOWS.match(self.scanner.text, self.scanner.skip()) is not None

    def key(self, seen: set[str]) -> tuple[str, int]:
        """`key=`, and its position."""
        position = self.scanner.skip()
        key = self.scanner.word("the key of an attribute")
        if key in seen:
            raise self.scanner.error(f"attribute {key!r} is given twice", position)
        seen.add(key)
        self.scanner.expect("=", f"after {key}")
        return key, position

    def _new_name(self, stem: str) -> str:
        """A name that no text can have: it has a space."""
        self._made_up += 1
        return f"{stem} {self._made_up}"

    def _enter(self, position: int) -> None:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self.scanner.error(f"instructions are nested deeper than {MAX_NESTING}", position)

    def _instruction(self) -> None:
        scanner = self.scanner
        start = scanner.skip()
        is_root = scanner.accept_word("ROOT")
        if is_root and scanner.peek("="):  # an instruction called ROOT
            scanner.position, is_root = start, False
        name = scanner.name("an instruction or '}'")
        scanner.expect("=", f"after {name}")
        self._right_side(name, is_root, with_attributes=True)

    def _right_side(self, name: str, is_root: bool, with_attributes: bool) -> str:
        """Read the right side of `=` as a new instruction; return its name. `name`: "" if it has none."""
        scanner = self.scanner
        start = scanner.skip()
        shape = self.shape() if self.at_shape() else None
        position = scanner.skip()
        opcode, wrapped = self._opcode("an opcode" if shape is not None else "a shape or an opcode")
        if shape is None and opcode in _NEEDS_TYPE:
            message = f"the result's shape must stand before {opcode.value}, which does not determine it"
            raise scanner.error(message, start)
        scanner.expect("(", f"after {opcode.value}")
        values: dict[str, Any] = {}
        operands: tuple[ParsedOperand, ...] = ()
        if opcode is Opcode.PARAMETER:
            values["number"] = scanner.integer("the number of the parameter")
        elif opcode is Opcode.CONSTANT and shape is not None and shape.tuple_shapes is not None:
            opcode, operands = Opcode.TUPLE, self._tuple_literal(shape.tuple_shapes)
        elif opcode is Opcode.CONSTANT and shape is not None:
            values["literal"] = read_literal(scanner, shape)
        else:
            operands = self._operands()
        scanner.expect(")", f"to close the operands of {opcode.value}")
        name = name or self._new_name(opcode.value)
        instruction = ParsedInstruction(name, position, is_root, shape, opcode, operands, values, wrapped=wrapped)
        form = form_of(spec_of(opcode).attributes)
        if opcode is Opcode.ASYNC_START and wrapped is not None:
            self._wrapping(instruction, wrapped, with_attributes)
        elif with_attributes:
            self._attributes(instruction, form.codecs, opcode.value)
        self._require(instruction, opcode, form)
        self._instructions.append(instruction)
        return name

    def _require(self, instruction: ParsedInstruction, opcode: Opcode, form: Form) -> None:
        for key in form.required:
            if key not in instruction.values:
                message = f"{opcode.value}{instruction.given_name and ' ' + instruction.given_name} needs {key}="
                raise self.scanner.error(message, instruction.position)

    def _opcode(self, expected: str) -> tuple[Opcode, Opcode | None]:
        """An opcode; for `negate-start` async-start, and the wrapped opcode."""
        position = self.scanner.skip()
        name = self.scanner.word(expected)
        opcode = OPCODE_NAMED.get(name)
        if opcode is not None:
            return opcode, None
        for suffix, asynchronous in _ASYNC_SUFFIXES.items():
            wrapped = OPCODE_NAMED.get(name.removesuffix(suffix)) if name.endswith(suffix) else None
            if wrapped is not None and wrapped not in _NEVER_WRAPPED:
                return asynchronous, wrapped
        raise self.scanner.error(_unknown_opcode(name), position)

    def _operands(self) -> tuple[ParsedOperand, ...]:
        """`%x, f32[2]{0} %y, pair#0, negate(x)`, up to the closing parenthesis."""
        operands: list[ParsedOperand] = []
        while not self.scanner.peek(")"):
            if operands:
                self.scanner.expect(",", "or ')' after an operand")
            operands.append(self._operand())
        return tuple(operands)

    def _operand(self) -> ParsedOperand:
        scanner = self.scanner
        start = scanner.skip()
        shape = self.shape() if self.at_shape() else None
        name_start = scanner.skip()
        name = scanner.name("the name of an operand")
        if scanner.peek("(") and not scanner.text.startswith("%", name_start):
            self._enter(start)
            scanner.position = start
            inner = self._right_side("", False, with_attributes=False)
            self._depth -= 1
            return ParsedOperand(inner, None, start)
        while scanner.accept("#"):
            name = self._element(name, scanner.integer("the index of a tuple's element"), start)
        return ParsedOperand(name, shape, start)

    def _element(self, name: str, index: int, position: int) -> str:
        """The instruction that takes element `index` of `name`: one for all its uses."""
        element = f"{name}#{index}"
        if element not in self._elements:
            self._elements.add(element)
            operands, values = (ParsedOperand(name, None, position),), {"index": index}
            self._instructions.append(
                ParsedInstruction(element, position, False, None, Opcode.GET_TUPLE_ELEMENT, operands, values)
            )
        return element

    def _tuple_literal(self, shapes: tuple[Shape, ...]) -> tuple[ParsedOperand, ...]:
        """`(1, {2, 3})`: a constant for each element, in a tuple for each tuple."""
        scanner = self.scanner
        refuse_elided(scanner)
        scanner.expect("(", "to open a constant of tuple type")
        operands: list[ParsedOperand] = []
        for shape in shapes:
            if operands:
                scanner.expect(",", f"after element {len(operands) - 1} of {len(shapes)} of the tuple")
            position = scanner.skip()
            inner = ParsedInstruction(self._new_name("constant"), position, False, shape, Opcode.CONSTANT, (), {})
            if shape.tuple_shapes is None:
                inner.values["literal"] = read_literal(scanner, shape, in_tuple=True)
            else:
                inner.opcode, inner.operands = Opcode.TUPLE, self._tuple_literal(shape.tuple_shapes)
            self._instructions.append(inner)
            operands.append(ParsedOperand(inner.name, None, position))
        scanner.expect(")", f"after the {len(shapes)} elements of the tuple")
        return tuple(operands)

    def _wrapping(self, start: ParsedInstruction, wrapped: Opcode, with_attributes: bool) -> None:
        """`negate-start(x)`: the attributes are the negate's, which becomes the root of a new computation."""
        shape, position = start.shape, start.position
        parts = shape.tuple_shapes if shape is not None else None
        if parts is None or len(parts) < 2 or parts[0].tuple_shapes is None:
            message = f"the shape of {wrapped.value}-start must be ((operands), result, ...)"
            raise self.scanner.error(message, position)
        form = form_of(spec_of(wrapped).attributes)
        if with_attributes:
            codecs = {**form_of(spec_of(Opcode.ASYNC_START).attributes).codecs, **form.codecs}
            codecs.pop("output_to_operand_aliasing", None)  # the start's, which keeps it as text
            self._attributes(start, codecs, f"{wrapped.value}-start")
        if "calls" in start.values and "calls" not in form.codecs:
            return
        parameters = [
            ParsedInstruction(
                self._new_name("parameter"), position, False, part, Opcode.PARAMETER, (), {"number": number}
            )
            for number, part in enumerate(parts[0].tuple_shapes)
        ]
        operands = tuple(ParsedOperand(parameter.name, None, position) for parameter in parameters)
        root = ParsedInstruction(
            self._new_name(wrapped.value), position, True, parts[1], wrapped, operands,
            {key: start.values.pop(key) for key in form.codecs if key in start.values}, start.metadata,
            start.frontend_attributes, {key: text for key, text in start.annotations.items() if key in ANNOTATIONS},
        )  # fmt: skip
        self._require(root, wrapped, form)
        computation = self._new_name("async_wrapped")
        self.inner.append(ParsedComputation(computation, position, False, None, [*parameters, root]))
        start.values["calls"] = ComputationName(computation, position)

    def _attributes(self, instruction: ParsedInstruction, codecs: Mapping[str, Codec[Any]], of: str) -> None:
        """`, key=value, ...`: the opcode's attributes, by `codecs`, and the attributes that any instruction may
        have."""
        scanner = self.scanner
        own = OPCODE_ANNOTATIONS.get(instruction.opcode, ())
        seen: set[str] = set()
        while scanner.accept(","):
            key, position = self.key(seen)
            if key in codecs:
                instruction.values[key] = self._value(codecs[key])
            elif key == "metadata":
                instruction.metadata = read_metadata(scanner, self.sources)
            elif key == "frontend_attributes":
                instruction.frontend_attributes = read_frontend_attributes(scanner)
            elif key in ANNOTATIONS or key in own:
                instruction.annotations[key] = scanner.value_text()
            elif key == "control-predecessors":
                instruction.predecessors = self._predecessors()
            else:
                known = ", ".join([*codecs, *own, "metadata or frontend_attributes"])
                raise scanner.error(f"unknown attribute {key!r} of {of}: expected {known}", position)

    def _value(self, codec: Codec[Any]) -> Any:
        """An attribute's value; a computation may be written instead of its name."""
        scanner = self.scanner
        if codec is COMPUTATION and scanner.peek("{"):
            return self._inner_computation()
        if codec is not COMPUTATIONS:
            return codec.read(scanner)
        scanner.expect("{", "to open a list of computations")
        names: list[ComputationName] = []
        while not names or scanner.accept(","):
            names.append(self._inner_computation() if scanner.peek("{") else read_computation(scanner))
        scanner.expect("}", "or ',' after a computation")
        return tuple(names)

    def _inner_computation(self) -> ComputationName:
        position = self.scanner.skip()
        self._enter(position)
        name = self._new_name("computation")
        computation = ParsedComputation(name, position, False, None, self.body("in this place", position))
        self.inner.append(computation)
        self._depth -= 1
        return ComputationName(name, position)

    def _predecessors(self) -> tuple[ParsedOperand, ...]:
        """`{%a, %b}`"""
        scanner = self.scanner
        scanner.expect("{", "to open a list of instructions")
        names: list[ParsedOperand] = []
        for _ in scanner.each("}", "an instruction"):
            position = scanner.skip()
            names.append(ParsedOperand(scanner.name("the name of an instruction"), None, position))
        return tuple(names)


def _unknown_opcode(name: str) -> str:
    close = difflib.get_close_matches(name[:40], OPCODE_NAMED, 1)
    return f"{name[:40]!r} is no HLO op: expected an opcode{f', perhaps {close[0]!r}' if close else ''}"
