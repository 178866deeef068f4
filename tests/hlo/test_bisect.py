"""`hloom bisect` on passes, rules and kernels that are wrong on purpose, and on programs that are correct."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hloom.hlo.bisection.bisect import Bisection
from hloom.hlo.ir import HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.expand.expand import Expand
from hloom.hlo.passes.manager import ByForm, FixedPoint, PassOptions, Pipeline
from hloom.hlo.passes.patterns import binary, unary
from hloom.hlo.passes.rewrite import HloPass, map_computations, rewrite_computation
from hloom.hlo.passes.rules import RuleSet, rule
from hloom.hlo.passes.simplify import control_flow_simplifier
from hloom.hlo.passes.simplify.algebraic_simplifier import RULES, AlgebraicSimplifier
from hloom.hlo.passes.simplify.control_flow_simplifier import ControlFlowSimplifier
from hloom.hlo.text.parser import parse
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.emit import elementwise
from hloom.numba_backend.expansions import NUMBA_EXPANSIONS
from hloom.numba_backend.output_fusion import find
from hloom.numba_backend.pipeline import pipeline

import hloom
from hloom.command_line import bisect as command
from hloom.command_line import main

PROGRAM = """HloModule program

body {
  s = (s32[], f32[40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[40] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  w = f32[40] cosine(v)
  ROOT t = (s32[], f32[40]) tuple(j, w)
}

condition {
  s = (s32[], f32[40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[40] parameter(0)
  y = f32[40] parameter(1)
  h = f16[40] parameter(2)
  zero = s32[] constant(0)
  e = f32[40] exponential(y)
  start = (s32[], f32[40]) tuple(zero, e)
  loop = (s32[], f32[40]) while(start), condition=condition, body=body
  l = f32[40] get-tuple-element(loop), index=1
  a = f32[40] abs(x)
  n = f32[40] negate(y)
  d = f32[40] subtract(a, n)
  m = f32[40] multiply(d, l)
  q = f32[40] subtract(m, x)
  k = c64[40] complex(q, y)
  big = c64[40] maximum(k, k)
  r = f32[40] real(big)
  t = f32[40] tanh(r)
  ROOT out = (f32[40], f16[40], f32[40]) tuple(t, h, a)
}
"""


def wrong_subtract(i: HloInstruction) -> HloInstruction | None:
    """a - b = b - a where a is a product: wrong."""
    a, b = i.operands
    return binary(Opcode.SUBTRACT, b, a) if a.opcode is Opcode.MULTIPLY else None


def wrong_extremum(i: HloInstruction) -> HloInstruction | None:
    """The larger of two complex numbers is -a: wrong."""
    return unary(Opcode.NEGATE, i.operands[0]) if i.shape.element.is_complex else None


def wrong_loop(i: HloInstruction) -> HloInstruction | None:
    """A loop gives its initial state: wrong."""
    return i.operands[0]


@dataclass(frozen=True)
class WrongPass:
    """A pass without rules, which forgets all cosines."""

    name: str = "forgets"

    def __call__(self, module: HloModule) -> HloModule:
        def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
            return moved.operands[0] if moved.opcode is Opcode.COS else moved

        return map_computations(module, lambda c: rewrite_computation(c, visit))


FLAT = PROGRAM.replace("f32[40] real(big)", "f32[40] cosine(q)")

BROKEN: dict[str, tuple[HloPass, str, str, str, int]] = {
    # the pass, the program, the pass's name and the wrong rule, instructions of the smallest program at most
    "simplification": (
        AlgebraicSimplifier(rules=RuleSet((*RULES, rule(wrong_subtract, Opcode.SUBTRACT)))),
        PROGRAM,
        "algebraic-simplifier",
        "wrong_subtract",
        3,
    ),
    "expansion": (
        Expand(rules=RuleSet((rule(wrong_extremum, Opcode.MAXIMUM), *NUMBA_EXPANSIONS))),
        PROGRAM,
        "expand",
        "wrong_extremum",
        2,
    ),
    "control flow": (
        ControlFlowSimplifier(rules=RuleSet((*control_flow_simplifier.RULES, rule(wrong_loop, Opcode.WHILE)))),
        PROGRAM,
        "control-flow-simplifier",
        "wrong_loop",
        13,
    ),
    "a pass without rules": (WrongPass(), FLAT, "forgets", "", 2),
}


def broken_pipeline(wrong: HloPass) -> Callable[..., Pipeline]:
    """The usual pipeline with `wrong` in the place of the pass of its name, or first."""

    def in_place(each: HloPass) -> HloPass:
        return wrong if each.name == wrong.name else each

    def broken(step: HloPass | FixedPoint) -> HloPass | FixedPoint:
        if isinstance(step, FixedPoint):
            return replace(step, passes=tuple(map(in_place, step.passes)))
        return in_place(step)

    def made(self: NumbaCompiler, target: str) -> Pipeline:
        found = pipeline(target)
        steps = [
            replace(step, steps=tuple(map(broken, step.steps))) if isinstance(step, ByForm) else broken(step)
            for step in found.steps
        ]
        if all(p.name != wrong.name for p in found.passes()):
            steps.insert(0, wrong)
        return Pipeline(found.name, tuple(steps))

    return made


@pytest.fixture
def bisect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """The exit code and stdout of `hloom bisect` on a text."""

    def run(text: str, *options: str) -> tuple[int, str]:
        path = tmp_path / "program.hlo"
        path.write_text(text)
        code = main(["bisect", str(path), *options])
        return code, capsys.readouterr().out.replace(str(path), "FILE")

    return run


def smallest(out: str) -> HloModule:
    """The module in what the command prints."""
    return parse(out.partition("the smallest program that shows it:")[2])


def test_a_healthy_program(bisect: Callable[..., tuple[int, str]]) -> None:
    assert bisect(PROGRAM) == (0, "FILE: the evaluator, every pass and the compiled program agree\n")


@pytest.mark.parametrize("case", BROKEN)
def test_a_wrong_pass(
    case: str, bisect: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrong, text, name, wrong_rule, most = BROKEN[case]
    monkeypatch.setattr(NumbaCompiler, "pipeline", broken_pipeline(wrong))
    small = tmp_path / "small.hlo"
    code, out = bisect(text, "--seed", "3", "-o", str(small))
    assert code == 1
    assert f"the result is wrong after pass {name}: result 0: f32[40]" in out
    assert (f"is wrong: {wrong_rule} in " in out) == bool(wrong_rule)
    module = smallest(out)
    assert sum(1 for _ in module.instructions()) <= most, out
    assert all(leaf.num_elements <= 2 for i in module.instructions() for leaf in i.shape.leaves()), out
    assert parse(small.read_text()).to_text() == module.to_text()
    with np.load(f"{small}.npz") as stored:
        assert len(stored.files) == sum(1 for p in module.entry.parameters for _ in p.shape.leaves())


def test_which_application_is_wrong(bisect: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewrites before it that are right do not count."""
    monkeypatch.setattr(NumbaCompiler, "pipeline", broken_pipeline(BROKEN["simplification"][0]))
    code, out = bisect(PROGRAM)
    assert code == 1
    found = re.search(r"\nrewrite (\d+) of (\d+) of that pass is wrong: wrong_subtract in main\n(.*)\n", out)
    assert found is not None, out
    assert 1 < int(found[1]) < int(found[2])
    assert found[3] == "  - %q = f32[40]{0} subtract(%m, %x)"


@pytest.mark.parametrize(
    ("opcode", "function", "kernel"), [(Opcode.TANH, "cosh", "fusion"), (Opcode.COS, "tanh", "cosine")]
)
def test_a_wrong_kernel(
    opcode: Opcode,
    function: str,
    kernel: str,
    bisect: Callable[..., tuple[int, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The emitter writes another function: in a kernel of the entry, and in one in a loop's body."""
    monkeypatch.setitem(elementwise._FUNCTIONS, opcode, function)
    hloom.clear_caches()  # of the kernels that are right
    try:
        code, out = bisect(PROGRAM)
    finally:
        hloom.clear_caches()
    assert code == 1
    assert "all passes agree with the evaluator, and the kernel of " in out and kernel in out, out
    module = smallest(out)
    assert [i.opcode for i in module.entry.instructions] == [Opcode.PARAMETER, opcode]
    assert module.entry.root.shape.num_elements == 1


@pytest.mark.parametrize(
    "after",
    ["ROOT z = f32[80,40] tanh(q)", "r = f32[80,40] reverse(q), dimensions={0}  ROOT z = f32[80,40] tanh(r)"],
)
def test_a_wrong_kernel_beside_products_that_run_piece_by_piece(
    after: str, bisect: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their fusion, and after it: memory that the fusion has for itself is no result."""
    monkeypatch.setattr(find, "least_bytes", lambda: 0)
    monkeypatch.setattr(find, "_FEWEST_ROWS", 12)
    monkeypatch.setitem(elementwise._FUNCTIONS, Opcode.TANH, "cosh")
    hloom.clear_caches()
    try:
        code, out = bisect(f"""HloModule m
ENTRY e {{ x = f32[80,40] parameter(0)  w = f32[40,64] parameter(1)  v = f32[64,40] parameter(2)
  p = f32[80,64] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  s = f32[80,64] negate(p)  q = f32[80,40] dot(s, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  {after} }}""")
    finally:
        hloom.clear_caches()
    assert code == 1
    assert [i.opcode for i in smallest(out).entry.instructions] == [Opcode.PARAMETER, Opcode.TANH], out


def test_arguments_from_files_and_the_tolerance(
    bisect: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Differences within the tolerance are allowed; NaN is equal to NaN alone."""

    def nearly(i: HloInstruction) -> HloInstruction | None:
        """sin(x) = x: for small x, nearly."""
        return i.operands[0]

    wrong = AlgebraicSimplifier(rules=RuleSet((rule(nearly, Opcode.SIN),)))
    monkeypatch.setattr(NumbaCompiler, "pipeline", broken_pipeline(wrong))
    text = "HloModule m\nENTRY e { x = f32[4] parameter(0) ROOT y = f32[4] sine(x) }"
    for values, options, code in (
        ([0.1, 0, -0.1, 0.1], ["--tolerance", "1e-2"], 0),
        ([0.1, 0, -0.1, 0.1], ["--tolerance", "1e-4"], 1),
        ([np.nan, 0, 0, 0], [], 0),
        ([np.inf, 0, 0, 0], [], 1),
    ):
        np.save(tmp_path / "x.npy", np.float32(values))
        assert bisect(text, "--input", str(tmp_path / "x.npy"), *options)[0] == code, values


def test_what_acts_is_refused(bisect: Callable[..., tuple[int, str]], capsys: pytest.CaptureFixture[str]) -> None:
    text = """HloModule m
ENTRY e { a = f32[] constant(0) b = f32[] constant(1) ROOT r = f32[4] rng(a, b), distribution=rng_uniform }"""
    assert bisect(text)[0] == 1


def test_programs_that_disagree_where_no_kernel_does() -> None:
    """A backend that is wrong only about whole programs."""
    module = parse("HloModule m\nENTRY e { x = f32[4] parameter(0) y = f32[4] sine(x) ROOT z = f32[4] cosine(y) }")

    class Wrong(command.Backend):
        pass

    def run(module: HloModule, arguments: list[np.ndarray]) -> list[np.ndarray]:
        opcodes = {i.opcode for i in module.instructions()}
        return [np.cos(np.sin(arguments[0])) + 1.0] if Opcode.SIN in opcodes else [np.cos(arguments[0])]

    def right(module: HloModule, arguments: list[np.ndarray]) -> list[np.ndarray]:
        return [np.sin(arguments[0])] if module.entry.root.opcode is Opcode.SIN else [np.cos(arguments[0])]

    backend = command.Backend(run, lambda module: module, right)
    finding = Bisection(Pipeline("none", ()), backend, None, PassOptions()).run(module, [np.float32([1, 2, 3, 4])])
    assert finding is not None
    assert (finding.what, finding.name) == ("program", "m")
