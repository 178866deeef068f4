"""Parsing: HLO text, as XLA and JAX print it, to an `HloModule`.

It accepts all that XLA's own parser accepts (hlo_parser.cc), in each of the forms that its printer has: operands with
or without types, names with or without `%`, computation headers long or short, computations in any order or in place,
comments, layouts with tiles and memory spaces. This file reads modules and computations, `instruction_parser.py` reads
instructions, `resolver.py` turns names into references.

Text without a meaning on one CPU is kept and printed again (`common_attributes.py`), except these, which are ignored:
the thread of a computation, stack frames (they become file and line), types of operands (after a check) and control
predecessors (an order among instructions that depend only on their operands here; side effects keep the order of the
text). An unknown attribute or opcode is refused by name. All errors are HloParseError, with line, column and the
expected text.
"""

from __future__ import annotations

import re

from ..ir import BufferDonor, HloModule, InputOutputAlias
from ..shape import Shape
from .codecs import read_bool, read_integers
from .common_attributes import MODULE_ANNOTATIONS, read_frontend_attributes
from .instruction_parser import InstructionParser
from .resolver import resolve
from .scanner import Scanner
from .syntax import ParsedComputation, ParsedModule


def parse(text: str, file: str = "<hlo>") -> HloModule:
    """The module that `text` describes. `file`: its name in errors.

    The entry is the computation marked ENTRY, else the last one. Computations that the entry does not reach are checked
    and dropped. HloParseError for text that is not HLO, breaks an op's rule, or needs a feature that hloom lacks.

    >>> from hloom import hlo
    >>> module = hlo.parse("ENTRY main { x = f32[3] parameter(0) ROOT y = f32[3] negate(x) }")
    >>> module.entry.root.opcode
    NEGATE
    """
    scanner = Scanner(text, file)
    return resolve(_Parser(scanner).module(), scanner)


_COMPUTATION = re.compile(r"ENTRY\b|%?[A-Za-z_][A-Za-z0-9_.\-]*\s*\{")
_MAX_DEVICES = 1 << 31


class _Parser:
    """Recursive descent, one method for each rule of the grammar."""

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.instructions = InstructionParser(scanner)

    def module(self) -> ParsedModule:
        """`HloModule name, key=value, ...`, source tables, computations. The first line may be missing."""
        scanner = self.scanner
        position = scanner.skip()
        module = ParsedModule("", position)
        if scanner.accept_word("HloModule"):
            module.name = scanner.name("the name of the module")
            scanner.accept(":")
            seen: set[str] = set()
            while scanner.accept(","):
                self._module_attribute(module, seen)
            self.instructions.sources.read(scanner)
        elif not _COMPUTATION.match(scanner.text, position):
            other = " (hloom.hlo.stablehlo.parse reads StableHLO)" if "func.func" in scanner.text else ""
            raise scanner.expected(f"'HloModule'{other}")
        while not scanner.at_end():
            computation = self._computation()
            module.computations += self.instructions.inner
            self.instructions.inner.clear()
            module.computations.append(computation)
        if not module.computations:
            raise scanner.expected("a computation")
        if not module.name:
            entry = next((c for c in module.computations if c.is_entry), module.computations[-1])
            module.name = f"module_{entry.name}"
        return module

    def _module_attribute(self, module: ParsedModule, seen: set[str]) -> None:
        scanner = self.scanner
        key, position = self.instructions.key(seen)
        if key == "is_scheduled":
            module.is_scheduled = read_bool(scanner)
        elif key == "entry_computation_layout":
            module.entry_layout, module.entry_layout_position = self._entry_layout(), position
        elif key == "input_output_alias":
            module.aliases, module.aliases_position = self._aliases(), position
        elif key == "buffer_donor":
            module.donors, module.donors_position = self._donors(), position
        elif key == "frontend_attributes":
            module.frontend_attributes = read_frontend_attributes(scanner)
        elif key == "replica_count":
            module.replica_count = self._count("replicas")
        elif key == "num_partitions":
            module.num_partitions = self._count("partitions")
        elif key in MODULE_ANNOTATIONS:
            module.annotations[key] = scanner.value_text()
        else:
            known = "entry_computation_layout, frontend_attributes, input_output_alias, buffer_donor or is_scheduled"
            raise scanner.error(f"unknown attribute {key!r} of the module: expected {known}", position)

    def _count(self, what: str) -> int:
        position = self.scanner.skip()
        count = self.scanner.integer(f"the number of {what}")
        if not 0 < count < _MAX_DEVICES:
            raise self.scanner.error(f"there must be 1 to {_MAX_DEVICES - 1} {what}, not {count}", position)
        return count

    def _entry_layout(self) -> tuple[tuple[Shape, ...], Shape]:
        """`{(f32[2]{0}, s32[])->f32[2]{0}}`"""
        self.scanner.expect("{", "to open the entry layout")
        self.scanner.expect("(", "to open the parameters' shapes")
        parameters = [self.instructions.shape() for _ in self.scanner.each(")", "a shape")]
        self.scanner.expect("->")
        result = self.instructions.shape()
        self.scanner.expect("}", "to close the entry layout")
        return tuple(parameters), result

    def _aliases(self) -> tuple[InputOutputAlias, ...]:
        """`{ {0}: (1, {}, may-alias) }`: output index, parameter, index in the parameter."""
        scanner = self.scanner
        scanner.expect("{", "to open the aliases")
        aliases: list[InputOutputAlias] = []
        for _ in scanner.each("}", "an alias"):
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
        return tuple(aliases)

    def _donors(self) -> tuple[BufferDonor, ...]:
        """`{ (0, {}), (1, {2}) }`: parameter, index in the parameter."""
        scanner = self.scanner
        scanner.expect("{", "to open the buffer donors")
        donors: list[BufferDonor] = []
        for _ in scanner.each("}", "a buffer donor"):
            scanner.expect("(", "to open a buffer donor")
            parameter = scanner.integer("the number of a parameter")
            scanner.expect(",")
            donors.append(BufferDonor(parameter, read_integers(scanner)))
            scanner.expect(")", "to close the buffer donor")
        return tuple(donors)

    def _computation(self) -> ParsedComputation:
        """`ENTRY %name (x: f32[2]) -> f32[2] {`, or `name {`; instructions; `}`."""
        scanner = self.scanner
        is_entry = scanner.accept_word("ENTRY")
        position = scanner.skip()
        name = scanner.name("a computation")
        signature = self._signature() if scanner.peek("(") else None
        instructions = self.instructions.body(name, position)
        seen: set[str] = set()
        while scanner.accept(","):
            key, key_position = self.instructions.key(seen)
            if key != "execution_thread":
                raise scanner.error(f"unknown attribute {key!r} of a computation", key_position)
            scanner.string("the name of a thread in quotes")
        return ParsedComputation(name, position, is_entry, signature, instructions)

    def _signature(self) -> tuple[tuple[Shape, ...], Shape]:
        """`(x: f32[2], y: s32[]) -> f32[2]`"""
        scanner = self.scanner
        scanner.expect("(")
        parameters: list[Shape] = []
        for _ in scanner.each(")", "a parameter"):
            scanner.name("the name of a parameter")
            if not self.instructions.at_shape():
                scanner.expect(":", "before the parameter's shape")
            parameters.append(self.instructions.shape())
        scanner.expect("->", "before the result's shape")
        return tuple(parameters), self.instructions.shape()
