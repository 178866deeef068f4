"""How attributes are read: a form for each attribute class, with its keys. `attribute_writer.py` writes them.

Source: the attribute tables in XLA's HloParserImpl::CreateInstruction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from ..attributes import (
    BroadcastAttributes,
    CallAttributes,
    CompareAttributes,
    ComparisonDirection,
    ComparisonType,
    Composite,
    ConcatenateAttributes,
    ConditionalAttributes,
    ConstantAttributes,
    DotAttributes,
    DynamicSliceAttributes,
    FusionAttributes,
    FusionKind,
    GetTupleElementAttributes,
    IotaAttributes,
    PadAttributes,
    ParameterAttributes,
    RandomAlgorithm,
    ReduceAttributes,
    ReverseAttributes,
    RngBitGeneratorAttributes,
    SliceAttributes,
    TransposeAttributes,
    WhileAttributes,
)
from ..ir import NO_ATTRIBUTES, Attributes, Metadata
from .mlir_dictionary import read_dictionary
from .scanner import Scanner
from .source_table import SourceTable
from .syntax import ComputationName, FrontendAttributes

E = TypeVar("E", bound=Enum)
Reader = Callable[[Scanner], Any]
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Form:
    """One attribute class in text: a reader for each key, the keys that must be there, and how to build it.

    `build` gets the values by key, computations resolved. It raises ValueError for a combination that makes no sense.
    """

    readers: Mapping[str, Reader]
    build: Callable[[Values], Attributes]
    required: tuple[str, ...] = ()


# Readers


def read_integers(scanner: Scanner) -> tuple[int, ...]:
    """`{0,2,1}`"""
    scanner.expect("{", "to open a list of numbers")
    values = []
    if not scanner.peek("}"):
        values.append(scanner.integer("a number"))
        while scanner.accept(","):
            values.append(scanner.integer("a number"))
    scanner.expect("}", "or ',' after a number")
    return tuple(values)


def read_bool(scanner: Scanner) -> bool:
    if scanner.accept_word("true"):
        return True
    if scanner.accept_word("false"):
        return False
    raise scanner.expected("true or false")


def _read_integer(scanner: Scanner) -> int:
    return scanner.integer("a number")


def _read_computation(scanner: Scanner) -> ComputationName:
    position = scanner.skip()
    return ComputationName(scanner.name("the name of a computation"), position)


def _read_computations(scanner: Scanner) -> tuple[ComputationName, ...]:
    scanner.expect("{", "to open a list of computations")
    names = [_read_computation(scanner)]
    while scanner.accept(","):
        names.append(_read_computation(scanner))
    scanner.expect("}", "or ',' after a computation")
    return tuple(names)


def _read_enum(kind: type[E]) -> Callable[[Scanner], E]:
    members = {member.value: member for member in kind}

    def read(scanner: Scanner) -> E:
        word = scanner.peek_word()
        if word not in members:
            raise scanner.expected(f"one of {', '.join(members)}")
        scanner.word("a value")
        return members[word]

    return read


def _read_slice(scanner: Scanner) -> tuple[tuple[int, int, int], ...]:
    """`{[0:4:2], [1:3]}`"""
    scanner.expect("{", "to open the slice")
    ranges: list[tuple[int, int, int]] = []
    while not scanner.peek("}"):
        if ranges:
            scanner.expect(",", "or '}' after a range")
        scanner.expect("[", "to open a range start:limit:stride")
        start = scanner.integer("a start index")
        scanner.expect(":")
        limit = scanner.integer("a limit index")
        stride = scanner.integer("a stride") if scanner.accept(":") else 1
        scanner.expect("]", "to close the range")
        ranges.append((start, limit, stride))
    scanner.expect("}")
    return tuple(ranges)


_NO_PADDING = re.compile(r"[ \t\r]*(?:[,}\n]|$)")
_PADDING = re.compile(r"(-?[0-9]{1,18})_(-?[0-9]{1,18})(?:_([0-9]{1,18}))?(x?)")


def _read_padding(scanner: Scanner) -> tuple[tuple[int, int, int], ...]:
    """`0_1x2_3_1`: low_high or low_high_interior for each dimension. Nothing at all for a scalar."""
    if _NO_PADDING.match(scanner.text, scanner.position):
        return ()
    position = scanner.skip()
    sizes = []
    while match := _PADDING.match(scanner.text, position):
        sizes.append((int(match.group(1)), int(match.group(2)), int(match.group(3) or 0)))
        position = scanner.position = match.end()
        if not match.group(4):
            return tuple(sizes)
    raise scanner.expected("padding as low_high or low_high_interior")


def _read_precision(scanner: Scanner) -> tuple[str, str]:
    scanner.expect("{", "to open the precisions")
    lhs = _read_one_precision(scanner)
    scanner.expect(",", "between the two operands' precisions")
    rhs = _read_one_precision(scanner)
    scanner.expect("}", "after the two operands' precisions")
    return lhs, rhs


_PRECISIONS = ("default", "high", "highest")


def _read_one_precision(scanner: Scanner) -> str:
    word = scanner.peek_word()
    if word not in _PRECISIONS:
        raise scanner.expected(f"one of {', '.join(_PRECISIONS)}")
    return scanner.word("a precision")


# Builders


def _slice(values: Values) -> Attributes:
    ranges = values["slice"]
    return SliceAttributes(tuple(r[0] for r in ranges), tuple(r[1] for r in ranges), tuple(r[2] for r in ranges))


def _pad(values: Values) -> Attributes:
    sizes = values["padding"]
    return PadAttributes(tuple(s[0] for s in sizes), tuple(s[1] for s in sizes), tuple(s[2] for s in sizes))


def _concatenate(values: Values) -> Attributes:
    if len(values["dimensions"]) != 1:
        raise ValueError("concatenate needs one dimension: expected dimensions={d}")
    return ConcatenateAttributes(values["dimensions"][0])


def _conditional(values: Values) -> Attributes:
    branches = values.get("branch_computations")
    on_true, on_false = values.get("true_computation"), values.get("false_computation")
    if branches is not None and on_true is None and on_false is None:
        return ConditionalAttributes(branches)
    if branches is None and on_true is not None and on_false is not None:
        return ConditionalAttributes((on_true, on_false))
    raise ValueError("conditional needs either branch_computations, or true_computation and false_computation")


def _dot(values: Values) -> Attributes:
    return DotAttributes(**values)


FORMS: dict[type[Attributes], Form] = {
    Attributes: Form({}, lambda v: NO_ATTRIBUTES),
    BroadcastAttributes: Form({"dimensions": read_integers}, lambda v: BroadcastAttributes(v.get("dimensions", ()))),
    CallAttributes: Form(
        {"to_apply": _read_computation, "is_composite": read_bool},
        lambda v: CallAttributes(v["to_apply"], v.get("composite")),
        ("to_apply",),
    ),
    CompareAttributes: Form(
        {"direction": _read_enum(ComparisonDirection), "type": _read_enum(ComparisonType)},
        lambda v: CompareAttributes(v["direction"], v.get("type")),
        ("direction",),
    ),
    ConcatenateAttributes: Form({"dimensions": read_integers}, _concatenate, ("dimensions",)),
    ConditionalAttributes: Form(
        {
            "branch_computations": _read_computations,
            "true_computation": _read_computation,
            "false_computation": _read_computation,
        },
        _conditional,
    ),
    ConstantAttributes: Form({}, lambda v: ConstantAttributes(v["literal"])),
    DotAttributes: Form(
        {
            "lhs_batch_dims": read_integers,
            "rhs_batch_dims": read_integers,
            "lhs_contracting_dims": read_integers,
            "rhs_contracting_dims": read_integers,
            "operand_precision": _read_precision,
        },
        _dot,
    ),
    DynamicSliceAttributes: Form(
        {"dynamic_slice_sizes": read_integers},
        lambda v: DynamicSliceAttributes(v["dynamic_slice_sizes"]),
        ("dynamic_slice_sizes",),
    ),
    FusionAttributes: Form(
        {"kind": _read_enum(FusionKind), "calls": _read_computation},
        lambda v: FusionAttributes(v["kind"], v["calls"]),
        ("kind", "calls"),
    ),
    GetTupleElementAttributes: Form(
        {"index": _read_integer}, lambda v: GetTupleElementAttributes(v["index"]), ("index",)
    ),
    IotaAttributes: Form(
        {"iota_dimension": _read_integer}, lambda v: IotaAttributes(v["iota_dimension"]), ("iota_dimension",)
    ),
    PadAttributes: Form({"padding": _read_padding}, _pad, ("padding",)),
    ParameterAttributes: Form({}, lambda v: ParameterAttributes(v["number"])),
    ReduceAttributes: Form(
        {"dimensions": read_integers, "to_apply": _read_computation},
        lambda v: ReduceAttributes(v["dimensions"], v["to_apply"]),
        ("dimensions", "to_apply"),
    ),
    ReverseAttributes: Form(
        {"dimensions": read_integers}, lambda v: ReverseAttributes(v["dimensions"]), ("dimensions",)
    ),
    RngBitGeneratorAttributes: Form(
        {"algorithm": _read_enum(RandomAlgorithm)},
        lambda v: RngBitGeneratorAttributes(v["algorithm"]),
        ("algorithm",),
    ),
    SliceAttributes: Form({"slice": _read_slice}, _slice, ("slice",)),
    TransposeAttributes: Form(
        {"dimensions": read_integers}, lambda v: TransposeAttributes(v["dimensions"]), ("dimensions",)
    ),
    WhileAttributes: Form(
        {"condition": _read_computation, "body": _read_computation},
        lambda v: WhileAttributes(v["condition"], v["body"]),
        ("condition", "body"),
    ),
}


# What every instruction may have


def read_frontend_attributes(scanner: Scanner) -> FrontendAttributes:
    """`{a="b",c={d = 1}}`"""
    scanner.expect("{", "to open the frontend attributes")
    pairs: dict[str, str] = {}
    while not scanner.peek("}"):
        if pairs:
            scanner.expect(",", "or '}' after a frontend attribute")
        position = scanner.skip()
        key = scanner.string("a key") if scanner.peek('"') else scanner.word("the key of a frontend attribute")
        if key in pairs:
            raise scanner.error(f"frontend attribute {key!r} is given twice", position)
        scanner.expect("=")
        pairs[key] = scanner.braced("a value") if scanner.peek("{") else scanner.string("a value in quotes or braces")
    scanner.expect("}")
    return tuple(pairs.items())


def read_metadata(scanner: Scanner, sources: SourceTable) -> Metadata | None:
    """`{op_name="f" source_file="a.py" source_line=3}`; a stack frame gives file and line too. Other fields go."""
    op_name, source_file, source_line, frame = "", "", 0, 0
    scanner.expect("{", "to open the metadata")
    while not scanner.accept("}"):
        key = scanner.word("a field of the metadata or '}'")
        scanner.expect("=")
        if key == "op_name":
            op_name = scanner.string("a string")
        elif key == "source_file":
            source_file = scanner.string("a string")
        elif key == "source_line":
            source_line = scanner.integer("a line number")
        elif key == "stack_frame_id":
            frame = scanner.integer("the number of a stack frame")
        else:
            scanner.skip_value()
        scanner.accept(",")
    location = sources.location(frame)
    if location is not None and not source_file:
        source_file, source_line = location
    return Metadata(op_name, source_file, source_line) if op_name or source_file or source_line else None


def read_composite(frontend_attributes: FrontendAttributes) -> tuple[Composite, FrontendAttributes]:
    """The composite that a call with `is_composite=true` stands for, and the frontend attributes that are not its own.

    ValueError tells which one is missing or malformed.
    """
    given = dict(frontend_attributes)
    name = given.pop("composite.name", None)
    if name is None:
        raise ValueError("a composite call needs the frontend attribute composite.name")
    version = given.pop("composite.version", "0")
    if not version.isdecimal() or len(version) > 9:
        raise ValueError(f"composite.version must be a number, not {version!r}")
    try:
        parameters = read_dictionary(given.pop("composite.attributes", "{}"))
    except ValueError as error:
        raise ValueError(f"composite.attributes: {error}") from None
    return Composite(name, parameters, version=int(version)), tuple(given.items())
