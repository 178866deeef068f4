"""The picture of a module, as Graphviz text."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hloom.hlo import HloModule, make_computation, make_instruction, make_module, make_parameter, parse
from hloom.hlo.element_type import ElementType
from hloom.hlo.opcode import Opcode
from hloom.hlo.shape import Shape
from hloom.hlo.text.dot_graph import to_dot

from support.hlo_texts import INSTRUCTIONS, RECORDED, module_with

FUSED = """HloModule m
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
fused { p = f32[8] parameter(0)
  k = f32[] parameter(1)
  kk = f32[8] broadcast(k), dimensions={}
  ROOT r = f32[8] multiply(p, kk) }
outer { t = (f32[8], f32[]) parameter(0)
  g = f32[8] get-tuple-element(t), index=0
  h = f32[] get-tuple-element(t), index=1
  ROOT u = (f32[8], f32[]) tuple(g, h) }
less { t = (f32[8], f32[]) parameter(0)
  h = f32[] get-tuple-element(t), index=1
  one = f32[] constant(1)
  ROOT c = pred[] compare(h, one), direction=LT }
ENTRY main { x = f32[8] parameter(0)
  two = f32[] constant(2.5)
  zero = f32[] constant(0)
  f = f32[8] fusion(x, two), kind=kLoop, calls=fused
  s = f32[] reduce(f, zero), dimensions={0}, to_apply=sum
  t = (f32[8], f32[]) tuple(f, s)
  ROOT w = (f32[8], f32[]) while(t), condition=less, body=outer }
"""


def labels(text: str) -> dict[str, str]:
    """The nodes by the first line of their labels."""
    return {m.group(2): m.group(1) for m in re.finditer(r'(n\d+) \[label="([^"\\]*)', text)}


def test_fusions_are_boxes_and_values_arrows() -> None:
    text = to_dot(parse(FUSED))
    nodes = labels(text)
    # the constants, and the reducer, are told in labels
    assert {"x", "kk", "r", "s", "w", "u"} <= set(nodes) and not {"two", "zero", "p", "k", "a"} & set(nodes)
    assert f"{nodes['x']} -> {nodes['r']};" in text, "an operand of the fusion feeds its instructions"
    assert f"{nodes['kk']} -> {nodes['r']};" in text
    assert f"{nodes['r']} -> {nodes['s']};" in text, "the fusion's root feeds its users"
    assert "operand 0: 2.5" in text, "a scalar given to the fusion is told where it is used"
    assert "to_apply=%sum (add)" in text and "cluster" in text
    assert text.count("style=dashed") == 2, "condition and body"


@pytest.mark.parametrize("text", [module_with(i) for i in INSTRUCTIONS] + [p.read_text() for p in RECORDED])
def test_every_arrow_has_two_ends(text: str) -> None:
    dot = to_dot(parse(text))
    nodes = set(re.findall(r"^ *(n\d+) \[label=", dot, re.MULTILINE))
    arrows = re.findall(r"(n\d+) -> (n\d+)", dot)
    assert {end for arrow in arrows for end in arrow} <= nodes


def nasty_module() -> HloModule:
    name = 'a"]; b -> c;\n\\'
    x = make_parameter(0, Shape.array(ElementType.F32, (2,)), name)
    root = make_instruction(Opcode.NEGATE, [x], frontend_attributes=((name, name),))
    return make_module(name, make_computation(name, root, [x]))


def test_names_cannot_end_a_string() -> None:
    assert to_dot(nasty_module()).startswith('digraph "a\\"]; b -> c;\\n\\\\" {\n')


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_takes_it(tmp_path: Path) -> None:
    for i, module in enumerate([parse(FUSED), nasty_module(), *(parse(p.read_text()) for p in RECORDED[::12])]):
        file = tmp_path / f"{i}.dot"
        file.write_text(to_dot(module))
        subprocess.run(["dot", "-Tcanon", "-o", str(tmp_path / "out"), str(file)], check=True, timeout=60)
