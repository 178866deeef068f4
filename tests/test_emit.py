"""Emitted kernels: programs that a careless code generator gets wrong, each against the evaluator."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hloom.hlo.element_type import ElementType
from hloom.hlo.memory_pressure import relieve
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.emit.kernel import pointer_of, program_of
from hloom.numba_backend.executable import NumbaExecutable
from hloom.numba_backend.loops.expressions import Name
from hloom.numba_backend.loops.printer import to_text
from hloom.numba_backend.loops.statements import LoopProgram, PointerParameter, SizeParameter
from hloom.numba_backend.loops.writer import Writer

from hloom import hlo
from support.nest_modules import assert_close, whole_arguments


def checked(text: str, donated: Sequence[int] = ()) -> NumbaExecutable:
    """The executable of a program, after comparing it with the evaluator."""
    module = hlo.parse(text)
    executable = NumbaCompiler().compile(module, donated=donated)
    for seed in range(2):
        arguments = whole_arguments(module, seed)
        assert_close(executable.execute(arguments), hlo.evaluate(module, *arguments))
    return executable


def kernel(executable: NumbaExecutable) -> str:
    """The text of the only kernel, without its comment."""
    (text,) = executable.kernels().values()
    return text[text.index("def ") :]


@pytest.mark.parametrize("donated", [(0,), (1,), (0, 1)])
def test_an_operand_is_read_before_an_output_takes_its_place(donated: tuple[int, ...]) -> None:
    executable = checked(
        """HloModule m ENTRY e {
          x = f32[40] parameter(0)  y = f32[40] parameter(1)
          a = f32[40] multiply(y, y)  b = f32[40] add(x, a)
          ROOT t = (f32[40], f32[40]) tuple(a, b)
        }""",
        donated,
    )
    assert executable.memory_analysis().alias_size_in_bytes == 160 * len(donated)


def test_two_outputs_take_each_others_operands() -> None:
    checked(
        """HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
        ENTRY e {
          x = f32[40] parameter(0)  y = f32[40] parameter(1)
          s = f32[40] add(x, y)  a = f32[40] subtract(s, x)  b = f32[40] subtract(s, y)
          ROOT t = (f32[40], f32[40]) tuple(a, b)
        }"""
    )


def test_a_reducer_may_hold_constants() -> None:
    executable = checked(
        """HloModule m
        largest { a = s32[] parameter(0)  b = s32[] parameter(1)  c = s32[] constant(3)  m = s32[] constant(7)
          d = s32[] maximum(a, b)  e = s32[] maximum(d, c)  ROOT r = s32[] and(e, m) }
        ENTRY e { x = s32[4,50] parameter(0)  z = s32[] constant(3)
          ROOT r = s32[4] reduce(x, z), dimensions={1}, to_apply=largest }"""
    )
    assert "int32(7)" in kernel(executable)  # the other operand of a bitwise operation is a literal


def test_distances_of_shifts_are_literals() -> None:
    executable = checked(
        """HloModule m ENTRY e { x = u32[40] parameter(0)  k = u32[] constant(13)  r = u32[] constant(19)
          a = u32[40] broadcast(k), dimensions={}  b = u32[40] broadcast(r), dimensions={}
          left = u32[40] shift-left(x, a)  right = u32[40] shift-right-logical(x, b)
          y = u32[40] or(left, right)  again = u32[40] shift-left(y, a)  ROOT s = u32[40] xor(y, again) }"""
    )
    assert "shl(x0[i], uint32(13))" in kernel(executable) or "shl(v0, uint32(13))" in kernel(executable)


def test_a_program_is_known_by_what_was_written_and_its_types() -> None:
    """Other values of the sizes do not matter; the type of a buffer, which the text does not tell, does."""

    def program(element_type: ElementType, count: int, name: str = "k") -> LoopProgram:
        writer = Writer()
        buffers = [PointerParameter("x", element_type, 0, None), PointerParameter("out", element_type, None, 0)]
        x, out = map(pointer_of, buffers)
        with writer.loop("i", Name("lo"), Name("hi")) as i:
            writer.store(out, i, x[i + Name("n")])
        return program_of(name, (*buffers, SizeParameter("n", count)), writer)

    first = program(ElementType.F32, 3)
    assert program(ElementType.F32, 4) is first
    assert program(ElementType.F64, 3) is not first and to_text(program(ElementType.F64, 3)) == to_text(first)
    assert program(ElementType.F32, 3, "other") is not first
    relieve()
    again = program(ElementType.F32, 3)
    assert again is not first and to_text(again) == to_text(first)
