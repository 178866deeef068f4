"""The verifier finds each violation, and says where it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hloom.hlo import (
    ElementType,
    HloComputation,
    HloInstruction,
    HloModule,
    InputOutputAlias,
    Layout,
    Metadata,
    Opcode,
    Shape,
    VerificationError,
    make_computation,
    make_instruction,
    make_module,
    make_parameter,
    make_tuple,
    verify,
)
from hloom.hlo.ops.control_flow import CallAttributes

from hloom.backend_check.op_table import CASES, build_module

F32 = Shape.array(ElementType.F32, (3,))
S32 = Shape.array(ElementType.S32, (3,))


def _computation(name: str = "f") -> HloComputation:
    x, y = make_parameter(0, F32, "x"), make_parameter(1, F32, "y")
    return make_computation(name, make_instruction(Opcode.ADD, [x, y], name="sum"), [x, y])


def _module(*aliases: InputOutputAlias) -> HloModule:
    return make_module("m", _computation(), input_output_aliases=aliases)


def _call(computation: HloComputation, operands: tuple[HloInstruction, ...], name: str = "call") -> HloInstruction:
    return HloInstruction(Opcode.CALL, computation.root.shape, operands, CallAttributes(computation), name)


def test_good_modules_pass() -> None:
    verify(_module(InputOutputAlias((), 0)))
    for case in CASES[:: len(CASES) // 100]:
        verify(build_module(case))


def _same_computation_name() -> HloModule:
    p, q = make_parameter(0, F32, "p"), make_parameter(1, F32, "q")
    callee = _computation("same")
    return HloModule("m", make_computation("same", _call(callee, (p, q)), [p, q]))


def _same_instruction_name() -> HloModule:
    x = make_parameter(0, F32, "x")
    return HloModule("m", make_computation("f", make_instruction(Opcode.NEGATE, [x], name="x"), [x]))


def _no_instruction_name() -> HloModule:
    x = make_parameter(0, F32, "x")
    return HloModule("m", make_computation("f", make_instruction(Opcode.NEGATE, [x]), [x]))


def _recursion() -> HloModule:
    inner, outer = _computation("inner"), _computation("outer")
    x, y = outer.parameters
    call_inner = _call(inner, (x, y), "call_inner")
    object.__setattr__(outer, "instructions", (x, y, call_inner))
    object.__setattr__(outer, "root", call_inner)
    call_outer = _call(outer, inner.parameters, "call_outer")
    object.__setattr__(inner, "instructions", (*inner.parameters, call_outer))
    object.__setattr__(inner, "root", call_outer)
    return HloModule("m", outer)


def _shared_instruction() -> HloModule:
    callee = _computation("callee")
    x, y = callee.parameters
    return HloModule("m", HloComputation("caller", (x, y, call := _call(callee, (x, y))), call))


def _operand_from_elsewhere() -> HloModule:
    x, stranger = make_parameter(0, F32, "x"), make_parameter(0, F32, "stranger")
    root = make_instruction(Opcode.ADD, [x, stranger], name="sum")
    return HloModule("m", HloComputation("f", (x, root), root))


def _operand_after_use() -> HloModule:
    f = _computation()
    return HloModule("m", HloComputation("f", f.instructions[::-1], f.root))


def _parameter_numbers() -> HloModule:
    x, y = make_parameter(0, F32, "x"), make_parameter(2, F32, "y")
    return HloModule("m", make_computation("f", make_instruction(Opcode.ADD, [x, y], name="sum"), [x, y]))


def _same_parameter_number() -> HloModule:
    x, y = make_parameter(0, F32, "x"), make_parameter(0, F32, "y")
    return HloModule("m", make_computation("f", make_instruction(Opcode.ADD, [x, y], name="sum"), [x, y]))


def _foreign_root() -> HloModule:
    f = _computation()
    return HloModule("m", HloComputation("f", f.instructions[:-1], f.root))


def _wrong_shape() -> HloModule:
    x = make_parameter(0, F32, "x")
    return HloModule("m", make_computation("f", HloInstruction(Opcode.NEGATE, S32, (x,), name="n"), [x]))


def _wrong_operand_type() -> HloModule:
    x = make_parameter(0, F32, "x")
    return HloModule("m", make_computation("f", HloInstruction(Opcode.NOT, F32, (x,), name="n"), [x]))


def _wrong_signature() -> HloModule:
    x = make_parameter(0, F32, "a")
    return HloModule("m", make_computation("g", _call(_computation(), (x,)), [x]))


def _layout_of_other_rank() -> HloModule:
    x = make_parameter(0, Shape(ElementType.F32, (3,), Layout((1, 0))), "x")
    return HloModule("m", make_computation("f", x, [x]))


def _entry_layouts(*layouts: Layout | None) -> Callable[[], HloModule]:
    return lambda: replace(_module(), entry_parameter_layouts=layouts)


def _result_layouts(*layouts: Layout | None) -> Callable[[], HloModule]:
    return lambda: replace(_module(), entry_result_layouts=layouts)


def _aliases(*aliases: InputOutputAlias) -> Callable[[], HloModule]:
    return lambda: _module(*aliases)


def _alias_of_other_size() -> HloModule:
    x, y = make_parameter(0, F32, "x"), make_parameter(1, Shape.array(ElementType.F32, (5, 7, 3)), "y")
    entry = make_computation("f", make_tuple([x, y]), [x, y])
    return make_module("m", entry, input_output_aliases=(InputOutputAlias((0,), 1),))


@pytest.mark.parametrize(
    ("label", "make"),
    [
        ("module_c1", _same_computation_name),
        ("module_c2", _same_instruction_name),
        ("module_c2", _no_instruction_name),
        ("module_c3", _recursion),
        ("module_c4", _aliases(InputOutputAlias((0,), 0))),
        ("module_c4", _aliases(InputOutputAlias((), 2))),
        ("module_c4", _aliases(InputOutputAlias((), -1))),
        ("module_c4", _aliases(InputOutputAlias((), 0, (0,)))),
        ("module_c4", _aliases(InputOutputAlias((), 0), InputOutputAlias((), 1))),
        ("module_c4", _alias_of_other_size),
        ("module_c5", _entry_layouts(Layout((0,)))),
        ("module_c5", _entry_layouts(Layout((0, 1)), None)),
        ("module_c5", _result_layouts(Layout((0, 1, 2)))),
        ("module_c5", _result_layouts(None, None)),
        ("module_c5", _result_layouts(Layout((1, 0), memory_space=99))),
        ("computation_c1", _shared_instruction),
        ("computation_c2", _operand_from_elsewhere),
        ("computation_c2", _operand_after_use),
        ("computation_c3", _parameter_numbers),
        ("computation_c3", _same_parameter_number),
        ("computation_c4", _foreign_root),
        ("negate_result", _wrong_shape),
        ("not_c1", _wrong_operand_type),
        ("call_c1", _wrong_signature),
        ("layout_c1", _layout_of_other_rank),
    ],
)
def test_violations_are_found(label: str, make: Callable[[], HloModule]) -> None:
    with pytest.raises(VerificationError, match=rf"\[{label}\]"):
        verify(make())


def test_message_tells_instruction_and_source() -> None:
    x = make_parameter(0, F32, "x")
    metadata = Metadata("jit(model)/neg", "model.py", 17)
    bad = HloInstruction(Opcode.NEGATE, S32, (x,), name="negative", metadata=metadata)
    with pytest.raises(VerificationError) as caught:
        verify(HloModule("m", make_computation("f", bad, [x])))
    for part in ("negative", "s32[3]", "negate(x)", "in f", "model.py:17", "jit(model)/neg"):
        assert part in str(caught.value)
