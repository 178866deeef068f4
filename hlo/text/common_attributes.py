"""Attributes that any instruction may have: metadata, frontend attributes, and those that are only kept as text."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir import Metadata
from ..opcode import Opcode
from ..ops.control_flow import Composite
from .mlir_dictionary import read_dictionary
from .scanner import Scanner
from .source_table import SourceTable
from .syntax import FrontendAttributes

ANNOTATIONS = frozenset(
    (
        "backend_config",  # choices of XLA's own backends; loop trip counts too, which the passes find themselves
        "origin",  # which value of an earlier program this one was
        "original_value",
        "parameter_replication",
        "result_accuracy",  # a permission to be less exact
        "sharding",
        "statistics",
    )
)
"""Attributes without a meaning on one CPU. The instruction keeps them as text; they are printed again."""

OPCODE_ANNOTATIONS: Mapping[Opcode, tuple[str, ...]] = {
    Opcode.ALL_REDUCE: ("mode",),
    Opcode.ALL_REDUCE_START: ("mode",),
    Opcode.ASYNC_START: ("output_to_operand_aliasing",),
    Opcode.CONVOLUTION: ("algorithm", "convolution_kind"),  # which convolution of a network it is: the window says all
    Opcode.COPY_START: ("cross_program_prefetch_index",),
    Opcode.CUSTOM_CALL: (
        *("window", "dim_labels", "feature_group_count", "batch_group_count", "padding_type", "literal"),
        "operand_precision",
    ),
    Opcode.FUSION: ("output_to_operand_aliasing",),  # a permission to share buffers
    Opcode.REDUCE_SCATTER: ("mode",),
    Opcode.RESHAPE: ("inferred_dimension",),  # which dimension is dynamic: none is
}
"""The same for attributes of one opcode."""

MODULE_ANNOTATIONS = frozenset(
    (
        "alias_passthrough_params",
        "allow_spmd_sharding_propagation_to_output",
        "allow_spmd_sharding_propagation_to_parameters",
        "backend_config",
        "debug_attributes",
        "origin_recovery_table",
    )
)
"""The same for attributes of the module."""

_METADATA_STRINGS = ("op_type", "deduplicated_name", "scheduling_name", "metadata_payload")
_METADATA_NUMBERS = ("source_end_line", "source_column", "source_end_column")


def read_frontend_attributes(scanner: Scanner) -> FrontendAttributes:
    """`{a="b",c={d = 1}}`"""
    scanner.expect("{", "to open the frontend attributes")
    pairs: dict[str, str] = {}
    for _ in scanner.each("}", "a frontend attribute"):
        position = scanner.skip()
        key = scanner.string("a key") if scanner.peek('"') else scanner.word("the key of a frontend attribute")
        if key in pairs:
            raise scanner.error(f"frontend attribute {key!r} is given twice", position)
        scanner.expect("=")
        pairs[key] = scanner.braced("a value") if scanner.peek("{") else scanner.string("a value in quotes or braces")
    return tuple(pairs.items())


def read_metadata(scanner: Scanner, sources: SourceTable) -> Metadata | None:
    """`{op_name="f" source_file="a.py" source_line=3}`. A stack frame is replaced by its file and line."""
    op_name, source_file, source_line, frame = "", "", 0, 0
    others: list[tuple[str, str]] = []
    scanner.expect("{", "to open the metadata")
    seen: set[str] = set()
    while not scanner.accept("}"):
        position = scanner.skip()
        key = scanner.word("a field of the metadata or '}'")
        if key in seen:
            raise scanner.error(f"field {key!r} of the metadata is given twice", position)
        seen.add(key)
        scanner.expect("=")
        if key == "op_name":
            op_name = scanner.string("a string")
        elif key == "source_file":
            source_file = scanner.string("a string")
        elif key == "source_line":
            source_line = scanner.integer("a line number")
        elif key == "stack_frame_id":
            frame = scanner.integer("the number of a stack frame")
        elif key in _METADATA_STRINGS:
            start = scanner.skip()
            scanner.string("a string")
            others.append((key, scanner.text[start : scanner.position]))
        elif key in _METADATA_NUMBERS:
            others.append((key, str(scanner.integer("a number"))))
        elif key == "profile_type":
            others.append((key, scanner.value_text()))
        else:
            scanner.skip_value()  # versions of XLA differ in these fields; none has a meaning here
        scanner.accept(",")
    location = sources.location(frame)
    if location is not None and not source_file:
        source_file, source_line = location
    if not (op_name or source_file or source_line or others):
        return None
    return Metadata(op_name, source_file, source_line, tuple(others))


def read_composite(frontend_attributes: FrontendAttributes) -> tuple[Composite, FrontendAttributes]:
    """The composite of a call with `is_composite=true`, and the frontend attributes that do not belong to it.

    ValueError tells which one is missing or malformed.
    """
    given = dict(frontend_attributes)
    name = given.pop("composite.name", None)
    if name is None:
        raise ValueError("a composite call needs the frontend attribute composite.name")
    version = given.pop("composite.version", "0")
    if not version.removeprefix("-").isdecimal() or len(version) > 9:
        raise ValueError(f"composite.version must be a number, not {version!r}")
    try:
        parameters = read_dictionary(given.pop("composite.attributes", "{}"))
    except ValueError as error:
        raise ValueError(f"composite.attributes: {error}") from None
    return Composite(name, parameters, version=int(version)), tuple(given.items())
