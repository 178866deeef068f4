"""Programs that look as if a pass applied, but that differ in the values of a type or in the order of operands.

Each is evaluated before and after the passes, and compiled.
"""

from __future__ import annotations

import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate
from hloom.hlo.passes.expand.expand import EXPANSIONS, Expand
from hloom.hlo.passes.manager import FixedPoint, PassOptions, Pipeline
from hloom.hlo.passes.rewrite import HloPass
from hloom.hlo.passes.simplify.algebraic_simplifier import AlgebraicSimplifier
from hloom.hlo.passes.simplify.common_subexpression_elimination import CommonSubexpressionElimination
from hloom.hlo.text.parser import parse
from hloom.hlo.verifier import verify
from hloom.numba_backend.compiler import NumbaCompiler

from support.comparing import Array, assert_same_arrays

THROUGH = """HloModule reduce_through

r {{
  a = {element}[] parameter(0)  b = {element}[] parameter(1)
  c = {wide}[] convert(a)  d = {wide}[] convert(b)
  e = {wide}[] {opcode}(c, d)  ROOT f = {element}[] convert(e)
}}
ENTRY e {{
  x = {element}[5] parameter(0)  start = {element}[] constant({start})
  ROOT y = {element}[] reduce(x, start), dimensions={{0}}, to_apply=r
}}
"""


def through(element: str, wide: str, opcode: str, start: float, values: list[float]) -> tuple[str, list[Array]]:
    """A reduction of five elements by a reducer that computes in another type."""
    text = THROUGH.format(element=element, wide=wide, opcode=opcode, start=start)
    dtype = parse(text).entry.parameters[0].shape.element.dtype
    return text, [np.array(values).astype(dtype)]


CONVERTED = """HloModule m
ENTRY e { p = pred[3] parameter(0)  m = f8e8m0fnu[3] convert(p)  ROOT r = f32[3] convert(m) }"""
SWAPPED = """HloModule m
ENTRY e {
  a = c64[3] parameter(0)  b = c64[3] parameter(1)
  x = c64[3] OPCODE(a, b)  y = c64[3] OPCODE(b, a)  ROOT r = (c64[3], c64[3]) tuple(x, y)
}"""
MAPPED_REDUCER = """HloModule m
half { a = f32[] parameter(0)  h = f32[] constant(0.5)  ROOT r = f32[] multiply(a, h) }
r { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] map(b), dimensions={}, to_apply=half
    ROOT d = f32[] add(a, c) }
ENTRY e {
  x = f32[2,1,3] parameter(0)  z = f32[] constant(1)
  ROOT y = f32[2,3] reduce(x, z), dimensions={1}, to_apply=r
}"""
MAP_OF_BROADCAST = """HloModule m
half { a = f32[] parameter(0)  h = f32[] constant(0.5)  ROOT r = f32[] multiply(a, h) }
ENTRY e {
  x = f32[3] parameter(0)  y = f32[8,3] broadcast(x), dimensions={1}
  ROOT z = f32[8,3] map(y), dimensions={0,1}, to_apply=half
}"""
COMPLEX = [np.array(v, np.complex64) for v in ([1 + 2j, 3, 1j], [1 - 2j, 4, -1j])]
SIMPLIFY, EXPAND, CSE = AlgebraicSimplifier(), Expand(EXPANSIONS), CommonSubexpressionElimination()

CASES: dict[str, tuple[HloPass, str, list[Array]]] = {
    "s4 through u8": (EXPAND, *through("s4", "u8", "maximum", 0, [-1, 1, 0, 0, 0])),
    "s4 through u8, least": (EXPAND, *through("s4", "u8", "minimum", 7, [-1, 1, 5, 6, 7])),
    "f8 through s32": (EXPAND, *through("f8e4m3fn", "s32", "add", 0, [0.5, 0.5, 1.75, 0.25, 3])),
    "s4 through f32": (EXPAND, *through("s4", "f32", "add", 0, [7, 7, 1, 0, 0])),
    "s4 through s8": (EXPAND, *through("s4", "s8", "add", 0, [7, 7, 1, 0, 0])),
    "f8 through f32": (EXPAND, *through("f8e5m2", "f32", "maximum", 0, [-1, 0.5, 1.75, 0.25, 3])),
    "pred through a type without zero": (SIMPLIFY, CONVERTED, [np.array([True, False, True])]),
    "complex maximum": (CSE, SWAPPED.replace("OPCODE", "maximum"), COMPLEX),
    "complex minimum": (CSE, SWAPPED.replace("OPCODE", "minimum"), COMPLEX),
    "map in a reducer": (SIMPLIFY, MAPPED_REDUCER, [np.arange(6, dtype=np.float32).reshape(2, 1, 3)]),
    "map of a broadcast": (SIMPLIFY, MAP_OF_BROADCAST, [np.arange(3, dtype=np.float32)]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_pass_keeps_the_meaning(name: str) -> None:
    each, text, arguments = CASES[name]
    module = parse(text)
    expected = evaluate(module, *arguments)
    after, _ = Pipeline("test", (FixedPoint((each,)),)).run(module, PassOptions(verify=True))
    verify(after)
    assert_same_arrays(expected, evaluate(after, *arguments))


@pytest.mark.parametrize("name", CASES)
def test_compiled(name: str) -> None:
    _, text, arguments = CASES[name]
    module = parse(text)
    assert_same_arrays(evaluate(module, *arguments), NumbaCompiler().compile(module).execute(arguments))


@pytest.mark.parametrize("name", ["s4 through s8", "f8 through f32"])
def test_a_reducer_that_computes_in_a_wider_type_is_still_one_operation(name: str) -> None:
    after = Expand(EXPANSIONS)(parse(CASES[name][1]))
    reducers = [c for i in after.entry.instructions for c in i.called_computations()]
    assert [len(c.instructions) for c in reducers] == [3]
