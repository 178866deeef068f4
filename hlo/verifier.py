"""The verifier: does a module keep the IR's invariants? The pass manager runs it after each pass that changes it.

It checks, by label:

* module_c1: computation names are unique and not empty; module_c2: so are instruction names, over the whole module
* module_c3: no computation calls itself, directly or through others
* module_c4: an input-output alias names a leaf of the result and a leaf of a parameter, both of one size; no leaf
  occurs in two aliases
* module_c5: entry layouts are given for all leaves of the parameters (of the result) or for none, and each leaf can
  have its layout
* module_c6: a buffer donor names a leaf of a parameter; no leaf is named twice
* computation_c1: an instruction is in one computation, once; computation_c2: its operands come before it there
* computation_c3: the parameters are numbered 0 to n-1; computation_c4: the root is one of the instructions
* every instruction's shape is the shape that its op's rule infers from the operands (labels of `ops/`)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from .builder import check_shape
from .errors import ShapeError, VerificationError
from .ir import HloComputation, HloInstruction, HloModule
from .layout_rules import layout_violation
from .opcode import Opcode
from .shape import Shape


def verify(module: HloModule) -> None:
    """Check `module`; VerificationError names the first violation, its label, the instruction and its source line.

    >>> from hloom import hlo
    >>> module = hlo.parse("ENTRY main { x = f32[3] parameter(0) ROOT y = f32[3] negate(x) }")
    >>> hlo.verify(module)
    """
    computations = _computations(module)
    _verify_names(module, computations)
    home: dict[HloInstruction, HloComputation] = {}
    for computation in computations:
        _verify_computation(computation, home)
    _verify_entry_layouts(module)
    _verify_aliases(module)  # after the layouts, on which sizes depend
    _verify_donors(module)


def _fail(label: str, why: str, where: HloInstruction | HloComputation | HloModule) -> NoReturn:
    message = f"{why} [{label}]\n  in {where!r}"
    if isinstance(where, HloInstruction) and where.metadata is not None and where.metadata.source_file:
        message += f"\n  from {where.metadata.source_file}:{where.metadata.source_line}"
        if where.metadata.op_name:
            message += f" ({where.metadata.op_name})"
    raise VerificationError(message)


def _computations(module: HloModule) -> list[HloComputation]:
    """All computations, callees first. Iterative; it keeps the path, to find recursion."""
    done: dict[HloComputation, None] = {}
    path: dict[HloComputation, None] = {}
    stack: list[tuple[HloComputation, bool]] = [(module.entry, False)]
    while stack:
        computation, callees_are_done = stack.pop()
        if callees_are_done:
            del path[computation]
            done[computation] = None
            continue
        if computation in done:
            continue
        if computation in path:
            _fail("module_c3", f"computation {computation.name} calls itself", computation)
        path[computation] = None
        stack.append((computation, True))
        for instruction in reversed(computation.instructions):
            for called in reversed(instruction.called_computations()):
                if called in path:
                    _fail("module_c3", f"computation {called.name} calls itself", instruction)
                if called not in done:
                    stack.append((called, False))
    return list(done)


def _verify_names(module: HloModule, computations: Iterable[HloComputation]) -> None:
    computation_names: set[str] = set()
    instruction_names: dict[str, HloInstruction] = {}
    for computation in computations:
        if not computation.name or computation.name in computation_names:
            _fail("module_c1", f"computation name {computation.name!r} is empty or not unique", module)
        computation_names.add(computation.name)
        for instruction in computation.instructions:
            first = instruction_names.setdefault(instruction.name, instruction)
            if not instruction.name or first is not instruction:
                why = f"instruction name {instruction.name!r} in {computation.name} is empty or not unique"
                _fail("module_c2", why, instruction)


def _verify_computation(computation: HloComputation, home: dict[HloInstruction, HloComputation]) -> None:
    seen: set[HloInstruction] = set()
    numbers: list[int] = []
    for instruction in computation.instructions:
        if instruction in home:
            why = f"{instruction.name} is twice in the module: in {home[instruction].name} and {computation.name}"
            _fail("computation_c1", why, instruction)
        home[instruction] = computation
        for operand in instruction.operands:
            if operand not in seen:
                why = f"operand {operand.name} of {instruction.name} does not come before it in {computation.name}"
                _fail("computation_c2", why, instruction)
        seen.add(instruction)
        _verify_instruction(instruction, computation)
        if instruction.opcode is Opcode.PARAMETER:
            numbers.append(instruction.attributes.number)
    if sorted(numbers) != list(range(len(numbers))):
        _fail("computation_c3", f"parameters of {computation.name} are numbered {sorted(numbers)}", computation)
    if computation.root not in seen:
        why = f"root {computation.root.name} of {computation.name} is not one of its instructions"
        _fail("computation_c4", why, computation)


def _verify_instruction(instruction: HloInstruction, computation: HloComputation) -> None:
    try:
        check_shape(
            instruction.opcode, [o.shape for o in instruction.operands], instruction.attributes, instruction.shape
        )
        for leaf in instruction.shape.leaves():
            Shape.array(leaf.element, leaf.dimensions, leaf.layout)
    except ShapeError as error:
        _fail(error.label, f"{instruction.name} in {computation.name}: {error}", instruction)


def _leaf(shape: Shape, index: tuple[int, ...]) -> Shape | None:
    """The array at `index` in `shape`, or None."""
    for i in index:
        if shape.tuple_shapes is None or not 0 <= i < len(shape.tuple_shapes):
            return None
        shape = shape.tuple_shapes[i]
    return shape if shape.is_array else None


def _verify_aliases(module: HloModule) -> None:
    outputs: set[tuple[int, ...]] = set()
    inputs: set[tuple[int, tuple[int, ...]]] = set()
    parameters = module.entry_parameter_shapes
    for alias in module.input_output_aliases:
        output = _leaf(module.entry_result_shape, alias.output_index)
        if output is None:
            _fail("module_c4", f"alias output {list(alias.output_index)} is not an array in the result", module)
        if not 0 <= alias.parameter < len(parameters):
            _fail("module_c4", f"alias parameter {alias.parameter} does not exist", module)
        parameter = _leaf(parameters[alias.parameter], alias.parameter_index)
        if parameter is None or parameter.byte_size != output.byte_size:
            why = f"alias of parameter {alias.parameter} {list(alias.parameter_index)} must be as large as {output}"
            if parameter is not None:
                why += f", {output.byte_size} bytes as {output.to_text()}; it has {parameter.byte_size}"
            _fail("module_c4", why, module)
        if alias.output_index in outputs or (alias.parameter, alias.parameter_index) in inputs:
            _fail("module_c4", f"parameter {alias.parameter} or its output is aliased twice", module)
        outputs.add(alias.output_index)
        inputs.add((alias.parameter, alias.parameter_index))


def _verify_entry_layouts(module: HloModule) -> None:
    parameters = [leaf for parameter in module.entry.parameters for leaf in parameter.shape.leaves()]
    results = list(module.entry.root.shape.leaves())
    for what, layouts, leaves in (
        ("parameters", module.entry_parameter_layouts, parameters),
        ("result", module.entry_result_layouts, results),
    ):
        if layouts and len(layouts) != len(leaves):
            _fail("module_c5", f"{len(layouts)} entry layouts for {len(leaves)} leaves of the {what}", module)
        for layout, leaf in zip(layouts, leaves):
            violation = None if layout is None else layout_violation(leaf.element, leaf.dimensions, layout)
            if violation is not None:
                why = f"layout {layout} does not fit {leaf}, a leaf of the {what}: {violation.message}"
                _fail("module_c5", f"{why} ({violation.label})", module)


def _verify_donors(module: HloModule) -> None:
    parameters = module.entry.parameters
    for donor in module.buffer_donors:
        known = 0 <= donor.parameter < len(parameters)
        if not known or _leaf(parameters[donor.parameter].shape, donor.parameter_index) is None:
            why = f"buffer donor ({donor.parameter}, {list(donor.parameter_index)}) is no leaf of a parameter"
            _fail("module_c6", why, module)
    if len(set(module.buffer_donors)) != len(module.buffer_donors):
        _fail("module_c6", "a buffer donor is named twice", module)
