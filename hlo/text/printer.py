"""Printing: the IR as HLO text, in XLA's own syntax, so that XLA's parser takes it.

Source: XLA's HloModule::ToString and HloInstruction::ToString. Operands are printed by name alone, attributes by
`attribute_writer.py`, constants in full by `literals.py`. `parser.py` reads all of it back to an equal module. `ir.py`
imports this module; so nothing here may import `ir.py` at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..opcode import Opcode
from .attribute_text import composite_frontend_attributes, frontend_attributes_text, integers
from .attribute_writer import WRITERS
from .escape import escape
from .literals import literal_text
from .names import Names, module_name

if TYPE_CHECKING:
    from ..ir import HloComputation, HloInstruction, HloModule, InputOutputAlias, Metadata


def print_module(module: HloModule, *, elide_over: int | None = None) -> str:
    """The text of `module`. Names that are no identifiers, or not unique, are made so.

    With `elide_over`, constants of more elements are shown as `{...}`: for people, `parse` refuses it.
    """
    computations = module.computations
    names = Names(computations)
    parts = [_header(module)]
    for computation in computations:
        entry = "ENTRY " if computation is module.entry else ""
        parts.append(entry + _computation_text(computation, names, elide_over))
    return "\n\n".join(parts) + "\n"


def print_computation(computation: HloComputation, *, elide_over: int | None = None) -> str:
    """The text of one computation, without those that it calls."""
    return _computation_text(computation, Names([computation]), elide_over)


def instruction_text(instruction: HloInstruction, names: Names, elide_over: int | None = None) -> str:
    """One instruction, without its metadata: `%add.1 = f32[2]{0} add(%x, %y)`."""
    return f"%{names.of_instruction(instruction)} = {operation_text(instruction, names, elide_over)}"


def operation_text(instruction: HloInstruction, names: Names, elide_over: int | None = None) -> str:
    """What stands right of an instruction's `=`, without its metadata."""
    opcode = instruction.opcode
    if opcode is Opcode.CONSTANT:
        inside = literal_text(instruction.attributes.literal, elide_over)
    elif opcode is Opcode.PARAMETER:
        inside = str(instruction.attributes.number)
    else:
        inside = ", ".join([f"%{names.of_instruction(operand)}" for operand in instruction.operands])
    writer = WRITERS.get(opcode)
    written = [f"{instruction.shape.to_text()} {opcode.value}({inside})"]
    if writer is not None:
        written.extend(writer(instruction, names.of_computation))
    written += [f"{key}={text}" for key, text in instruction.annotations if key == "sharding"]
    frontend_attributes = list(instruction.frontend_attributes)
    if opcode is Opcode.CALL and instruction.attributes.composite is not None:
        frontend_attributes[:0] = composite_frontend_attributes(instruction.attributes.composite)
    if frontend_attributes:
        written.append(frontend_attributes_text(frontend_attributes))
    written += [f"{key}={text}" for key, text in instruction.annotations if key not in _PRINTED_ELSEWHERE]
    return ", ".join(written)


_PRINTED_ELSEWHERE = ("sharding", "backend_config")


def _computation_text(computation: HloComputation, names: Names, elide_over: int | None) -> str:
    """
    %name (x: f32[2]) -> f32[2] {
      %x = f32[2]{0} parameter(0)
      ROOT %negate = f32[2]{0} negate(%x)
    }
    """
    parameters = ", ".join(f"{names.of_instruction(p)}: {p.shape}" for p in computation.parameters)
    lines = [f"%{names.of_computation(computation)} ({parameters}) -> {computation.root.shape} {{"]
    for instruction in computation.instructions:
        root = "ROOT " if instruction is computation.root else ""
        metadata = "" if instruction.metadata is None else _metadata_text(instruction.metadata)
        metadata += "".join(f", {key}={text}" for key, text in instruction.annotations if key == "backend_config")
        lines.append(f"  {root}{instruction_text(instruction, names, elide_over)}{metadata}")
    return "\n".join([*lines, "}"])


def _metadata_text(metadata: Metadata) -> str:
    fields = []
    if metadata.op_name:
        fields.append(f'op_name="{escape(metadata.op_name)}"')
    if metadata.source_file:
        fields.append(f'source_file="{escape(metadata.source_file)}"')
    if metadata.source_line:
        fields.append(f"source_line={metadata.source_line}")
    fields += [f"{key}={text}" for key, text in metadata.others]
    return f", metadata={{{' '.join(fields)}}}" if fields else ""


def _header(module: HloModule) -> str:
    fields = [f"HloModule {module_name(module.name)}"]
    if module.is_scheduled:
        fields.append("is_scheduled=true")
    if module.input_output_aliases:
        aliases = ", ".join(_alias_text(alias) for alias in module.input_output_aliases)
        fields.append(f"input_output_alias={{ {aliases} }}")
    if module.buffer_donors:
        donors = ", ".join(f"({donor.parameter}, {integers(donor.parameter_index)})" for donor in module.buffer_donors)
        fields.append(f"buffer_donor={{ {donors} }}")
    fields.append(f"entry_computation_layout={{{_entry_layout(module)}}}")
    if module.replica_count != 1:
        fields.append(f"replica_count={module.replica_count}")
    if module.num_partitions != 1:
        fields.append(f"num_partitions={module.num_partitions}")
    fields += [f"{key}={text}" for key, text in module.annotations]
    if module.frontend_attributes:
        fields.append(frontend_attributes_text(module.frontend_attributes))
    return ", ".join(fields)


def _alias_text(alias: InputOutputAlias) -> str:
    kind = "must-alias" if alias.must_alias else "may-alias"
    return f"{integers(alias.output_index)}: ({alias.parameter}, {integers(alias.parameter_index)}, {kind})"


def _entry_layout(module: HloModule) -> str:
    """`(f32[2,3]{1,0})->f32[2]{0}`: the shapes as the caller sees them."""
    parameters = ", ".join(shape.to_text() for shape in module.entry_parameter_shapes)
    return f"({parameters})->{module.entry_result_shape.to_text()}"
