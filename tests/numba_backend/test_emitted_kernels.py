"""Emitted kernels: programs that a careless code generator gets wrong, each against the evaluator."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hloom.hlo.element_type import ElementType
from hloom.hlo.support.memory_pressure import relieve
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.emitted_kernel import pointer_of, program_of
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


@pytest.mark.parametrize("sizes", ["40", "20,2", "10,4", "2,4,5", "1,40,1"])
def test_numbers_made_of_bits_are_walked_as_one_row(sizes: str) -> None:
    """As uniform and normal numbers are: a short last dimension must not become a loop of its own."""
    text = kernel(
        checked(
            f"""HloModule m
        ENTRY e {{ x = u32[{sizes}] parameter(0)  nine = u32[] constant(9)  one = u32[] constant(1065353216)
          by = u32[{sizes}] broadcast(nine), dimensions={{}}  exponent = u32[{sizes}] broadcast(one), dimensions={{}}
          mantissa = u32[{sizes}] shift-right-logical(x, by)  bits = u32[{sizes}] or(mantissa, exponent)
          ROOT y = f32[{sizes}] bitcast-convert(bits) }}"""
        )
    )
    assert text.count("for ") == 1 and "x0[i]" in text


def rolled(n: int) -> str:
    """The sum of a row's elements and its neighbours on a ring, of three arrays, as a cellular automaton has it."""
    pieces = [
        f"""a{k} = s32[30,{n - 1}] slice({x}), slice={{[0:30], [1:{n}]}}
          b{k} = s32[30,1] slice({x}), slice={{[0:30], [0:1]}}
          c{k} = s32[30,1] slice({x}), slice={{[0:30], [{n - 1}:{n}]}}
          d{k} = s32[30,{n - 1}] slice({x}), slice={{[0:30], [0:{n - 1}]}}
          left{k} = s32[30,{n}] concatenate(a{k}, b{k}), dimensions={{1}}
          right{k} = s32[30,{n}] concatenate(c{k}, d{k}), dimensions={{1}}
          sum{k} = s32[30,{n}] add(left{k}, right{k})"""
        for k, x in enumerate("xyz")
    ]
    arrays = "  ".join(f"{x} = s32[30,{n}] parameter({k})" for k, x in enumerate("xyz"))
    return f"""HloModule m
        ENTRY e {{ {arrays} {" ".join(pieces)}
          both = s32[30,{n}] add(sum0, sum1)  ROOT all = s32[30,{n}] multiply(both, sum2) }}"""


def test_slices_that_lose_equally_many_elements_have_one_size() -> None:
    """So loops are split at one point, not at one for each array, and none is left. Another size has the same text."""
    text = kernel(checked(rolled(40)))
    assert "if " not in text
    assert text == kernel(checked(rolled(57)))


def test_slices_of_one_length_that_lose_other_numbers_are_apart() -> None:
    executable = checked(
        """HloModule m
        ENTRY e { x = f32[40] parameter(0)  y = f32[41] parameter(1)  a = f32[39] slice(x), slice={[1:40]}
          b = f32[39] slice(y), slice={[2:41]}  c = f32[38] slice(x), slice={[0:38]}
          d = f32[38] slice(x), slice={[2:40]}
          sum = f32[39] add(a, b)  other = f32[38] multiply(c, d)
          short = f32[37] slice(sum), slice={[2:39]}  last = f32[37] slice(other), slice={[0:37]}
          ROOT r = f32[37] subtract(short, last) }"""
    )
    assert executable.kernels()


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


def test_divisors_of_integers_are_literals() -> None:
    executable = checked(
        """HloModule m ENTRY e { x = u32[40] parameter(0)  k = u32[] constant(1000)
          a = u32[40] broadcast(k), dimensions={}  rest = u32[40] remainder(x, a)
          ROOT y = u32[40] divide(rest, a) }"""
    )
    text = kernel(executable)
    assert text.count("uint32(1000)") == 2 and "c0" not in text


@pytest.mark.parametrize(("x", "function"), [("1", "atan("), ("2", "atan2(")])
@pytest.mark.parametrize("element", ["f32", "bf16", "f64", "c64"])
def test_an_angle_above_one_is_an_inverse_tangent(element: str, x: str, function: str) -> None:
    number = f"({x}, 0)" if element == "c64" else x
    executable = checked(
        f"""HloModule m ENTRY e {{ y = {element}[40] parameter(0)  one = {element}[] constant({number})
          x = {element}[40] broadcast(one), dimensions={{}}  ROOT a = {element}[40] atan2(y, x) }}"""
    )
    assert (function if element != "c64" else "atan2(") in kernel(executable)
