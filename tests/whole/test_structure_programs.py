"""Programs of unusual structure (tests/data/structure): what may be a parameter, result, state, operand or callee.

Each gives the same results on the evaluator, compiled, and in XLA if it is installed; and does not change when it is
printed and parsed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hloom.hlo import ExecutionError, HloModule, Shape, UnsupportedError, evaluate, verify
from hloom.hlo.buffers.assignment import assign_buffers
from hloom.hlo.buffers.checker import verify_buffers
from hloom.hlo.element_type import ElementType
from hloom.hlo.passes.manager import PassOptions
from hloom.hlo.text.parser import parse
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.fused_computations import FusedComputations
from hloom.numba_backend.pipeline import pipeline

from hloom.backend_check.op_values import NDArray

PROGRAMS = sorted((Path(__file__).parents[1] / "data" / "structure").glob("*.hlo"), key=lambda p: p.name)

XLA_CANNOT = {
    "a_comparison_of_bits_in_a_reducer": "XLA makes bitcasts after layouts are assigned, and takes none before",
    "fusions_in_fusions_of_several_results": "XLA takes fusions only as its own passes make them",
    "fusions_of_every_kind": "XLA takes fusions only as its own passes make them",
    "layouts_and_bitcasts_in_fusions": "XLA crashes",
    "aliases_of_another_type": "XLA's verifier wants one type, its scheduled modules have others",
    "aliases_of_elements_of_tuples": "StableHLO, by which this goes to XLA, flattens the result but not the aliases",
    "async_start_update_done": "XLA's CPU backend wants nothing but one instruction in an asynchronous computation",
    "copy_start_and_done": "XLA has no code for it on the CPU",
    "ragged_all_to_all": "XLA crashes",
    "tokens": "a token is no result that can be looked at",
    "the_root_is_a_parameter_of_nested_tuples": "a token is no result that can be looked at",
    "a_loop_over_nested_tuples": "a token is no result that can be looked at",
}


def _arguments(module: HloModule, seed: int) -> list[NDArray]:
    """Small numbers, so that loops end and branches differ."""
    rng = np.random.default_rng(seed)
    leaves = [leaf for parameter in module.entry.parameters for leaf in parameter.shape.leaves()]

    def values(leaf: Shape) -> NDArray:
        high = 2 if leaf.element is ElementType.PRED else 5
        return np.asarray(rng.integers(0, high, leaf.dimensions)).astype(leaf.element.dtype)

    return [values(leaf) for leaf in leaves]


def _assert_equal(actual: list[NDArray], expected: list[NDArray]) -> None:
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert a.dtype == e.dtype and a.shape == e.shape
        np.testing.assert_array_equal(a, e)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_compiled_code_agrees_with_the_evaluator(path: Path) -> None:
    module = parse(path.read_text(), path.name)
    verify(module)
    executable = NumbaCompiler().compile(module)
    for seed in range(4):
        arguments = _arguments(module, seed)
        _assert_equal(executable.execute(arguments), evaluate(module, *arguments))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_passes_and_buffers_are_right(path: Path) -> None:
    bodies = FusedComputations()
    module, _ = pipeline("cpu", bodies).run(parse(path.read_text()), PassOptions(verify=True))
    verify_buffers(assign_buffers(module, bodies.can_share), bodies.can_share)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_text_round_trip(path: Path) -> None:
    text = parse(path.read_text()).to_text()
    assert parse(text).to_text() == text


@pytest.mark.parametrize("path", [p for p in PROGRAMS if p.stem not in XLA_CANNOT], ids=lambda p: p.stem)
def test_xla_agrees(path: Path) -> None:
    pytest.importorskip("jax")
    from support.xla_oracle import run_hlo_text

    module = parse(path.read_text())
    text = module.to_text().replace("must-alias", "may-alias")  # the arguments are not donated, so XLA copies them
    for seed in range(2):
        arguments = _arguments(module, seed)
        _assert_equal(run_hlo_text(text, *arguments), evaluate(module, *arguments))


def test_exceptions_are_programs() -> None:
    assert len(PROGRAMS) > 30 and set(XLA_CANNOT) <= {p.stem for p in PROGRAMS}


_ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"

REFUSED = {
    "x = f32[4] parameter(0)  ROOT r = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add": "2 replicas",
    "x = f32[4] parameter(0)  ROOT r = f32[8] all-gather(x), replica_groups={}, dimensions={0}": "several|one device",
    "x = f32[4] parameter(0)  ROOT r = f32[4] collective-permute(x), source_target_pairs={{0,3}}": "4 replicas",
    "x = f32[4] parameter(0)  "
    "ROOT r = f32[2] reduce-scatter(x), replica_groups={{2,0}}, dimensions={0}, to_apply=add": "3 replicas",
    "x = f32[4] parameter(0)  ROOT r = f32[4] collective-broadcast(x), replica_groups={{1,0}}": "2 replicas",
    "x = f32[4] parameter(0)  ROOT r = (f32[4], f32[4]) all-to-all(x, x), replica_groups={}": "2 rep|one device",
    "x = f32[4] parameter(0)  n = s32[] constant(3)  ROOT r = f32[4] set-dimension-size(x, n), dimensions={0}": (
        "only the full size, 4"
    ),
    "x = f32[4] parameter(0)  n = s32[] constant(2)  ROOT r = f32[4] dynamic-reshape(x, n)": "supported",
}


@pytest.mark.parametrize(("body", "why"), REFUSED.items())
@pytest.mark.parametrize("run", ["evaluator", "numba"])
def test_what_one_device_with_static_shapes_cannot_do(body: str, why: str, run: str) -> None:
    module = parse(f"HloModule m\n{_ADD}ENTRY main {{\n{body}\n}}")
    argument = np.arange(4, dtype=np.float32)
    evaluator: Callable[[], object] = lambda: evaluate(module, argument)  # noqa: E731
    with pytest.raises((ExecutionError, UnsupportedError), match=why):
        evaluator() if run == "evaluator" else NumbaCompiler().compile(module)


def test_a_size_that_is_not_constant_is_refused() -> None:
    body = "x = f32[4] parameter(0)\nn = s32[] parameter(1)\nROOT r = f32[4] set-dimension-size(x, n), dimensions={0}"
    module = parse(f"HloModule m\nENTRY main {{\n{body}\n}}")
    with pytest.raises(UnsupportedError, match=r"not a constant is not supported"):
        NumbaCompiler().compile(module)
    x = np.arange(4, dtype=np.float32)
    _assert_equal(evaluate(module, x, np.int32(4)), [x])
    with pytest.raises(ExecutionError, match="only the full size"):
        evaluate(module, x, np.int32(3))


def test_a_size_computed_from_constants_is_one() -> None:
    text = """
      x = f32[4,3] parameter(0)
      n = s32[] get-dimension-size(x), dimensions={0}
      one = s32[] constant(1)
      more = s32[] add(n, one)
      less = s32[] subtract(more, one)
      ROOT r = f32[4,3] set-dimension-size(x, less), dimensions={0}"""
    module = parse(f"HloModule m\nENTRY main {{{text}\n}}")
    x = np.ones((4, 3), np.float32)
    _assert_equal(NumbaCompiler().compile(module).execute([x]), [x])


@pytest.mark.parametrize("attribute", ["replica_count=2", "num_partitions=4"])
def test_programs_for_several_devices_want_arguments_for_each(attribute: str) -> None:
    module = parse(f"HloModule m, {attribute}\nENTRY main {{\nROOT x = f32[] parameter(0)\n}}")
    assert attribute in module.to_text() and parse(module.to_text()).to_text() == module.to_text()
    with pytest.raises(ExecutionError, match="execute_on_devices"):
        NumbaCompiler().compile(module).execute([np.float32(1)])
    with pytest.raises(ExecutionError, match="evaluate_on_devices"):
        evaluate(module, np.float32(1))


def test_loops_in_loops_in_loops() -> None:
    """Control flow as deep as the parser lets it be."""
    depth = 40
    state = "(s32[], f32[])"
    parts = [
        "last {",
        f"  p = {state} parameter(0)",
        "  n = s32[] get-tuple-element(p), index=0",
        "  k = s32[] constant(1)",
        "  ROOT r = pred[] compare(n, k), direction=LT\n}",
        "b0 {",
        f"  p = {state} parameter(0)",
        "  n = s32[] get-tuple-element(p), index=0",
        "  x = f32[] get-tuple-element(p), index=1",
        "  k = s32[] constant(1)",
        "  m = s32[] add(n, k)",
        "  y = f32[] add(x, x)",
        f"  ROOT r = {state} tuple(m, y)\n}}",
    ]
    for level in range(1, depth):
        parts += [f"b{level} {{", f"  p = {state} parameter(0)"]
        parts += [f"  ROOT w = {state} while(p), condition=last, body=b{level - 1}\n}}"]
    parts += ["ENTRY main {", "  n = s32[] parameter(0)", "  x = f32[] parameter(1)", f"  t = {state} tuple(n, x)"]
    parts += [f"  ROOT w = {state} while(t), condition=last, body=b{depth - 1}\n}}"]
    module = parse("HloModule deep\n" + "\n".join(parts))
    for n in (0, 1):
        arguments = [np.int32(n), np.float32(3)]
        _assert_equal(NumbaCompiler().compile(module).execute(arguments), evaluate(module, *arguments))
