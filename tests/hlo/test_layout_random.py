"""Random orders of dimensions on parameters, results and intermediates change only the positions of bytes: over the
table of ops, and over random modules."""

from __future__ import annotations

import os
import random
import zlib
from functools import partial
from unittest import mock

import hypothesis
import hypothesis.strategies as st
import pytest
from hloom.hlo.evaluator import evaluate
from hloom.hlo.ir import HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.manager import PassOptions
from hloom.hlo.passes.rewrite import fused_computations

from hloom.backend_check.op_table import CASES, OpCase, build_module, check_results, make_inputs
from support.case_forms import every_second, one_of_each_form
from support.comparing import assert_same_arrays
from support.layout_orders import compile_with, pipeline_with, random_preferences, with_random_entry_layouts
from support.parts import assert_each
from support.random_modules import random_arguments, random_module


def _has_a_matrix(case: OpCase) -> bool:
    """Whether there is an order to choose."""
    shapes = [a.shape for a in case.arrays]
    return any(leaf.true_rank > 1 for leaf in [*shapes, *case.result.leaves()])


MATRICES = [case for case in CASES if _has_a_matrix(case)]


def _sample() -> list[OpCase]:
    """Some cases of each opcode, and of each number of dimensions."""
    seen: dict[tuple[Opcode, int], int] = {}
    found = []
    for case in sorted(MATRICES, key=lambda c: zlib.crc32(c.id.encode())):
        rank = max(leaf.rank for leaf in case.result.leaves())
        kind = case.opcode, rank
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= 2:
            found.append(case)
    return found


SAMPLE = _sample()


def check(case: OpCase, target: str = "cpu", *, tiled: bool = False) -> None:
    module, inputs = build_module(case), make_inputs(case)
    rng = random.Random(case.id)
    expected = evaluate(module, *inputs)
    given = with_random_entry_layouts(module, rng, tiled=tiled)
    check_results(case, compile_with(given, random_preferences(rng), target).execute(inputs), expected)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.id)
def test_op_in_random_layouts(case: OpCase) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("opcode", sorted({case.opcode.value for case in MATRICES}))
def test_every_op_in_random_layouts(opcode: str) -> None:
    """Of cases that differ in element types only one, as orders move all types alike: half of them for a CPU, the
    others in tiles for a TPU. (`test_tpu_ops.py` has all types, packings and sizes.) One test an opcode: there is less
    to collect."""
    chosen = one_of_each_form([case for case in MATRICES if case.opcode.value == opcode])
    for_cpu = every_second(chosen)
    assert_each(for_cpu, check, lambda case: f"{case.id} for a CPU")
    others = [case for case in chosen if case not in for_cpu]
    assert_each(others, partial(check, target="tpu", tiled=True), lambda case: f"{case.id} for a TPU")


@hypothesis.given(st.randoms(use_true_random=False))
@hypothesis.settings(max_examples=25, suppress_health_check=list(hypothesis.HealthCheck), deadline=None)
def test_modules_in_random_layouts(rng: random.Random) -> None:
    check_module(rng)


@pytest.mark.slow
@hypothesis.given(st.randoms(use_true_random=False))
@hypothesis.settings(max_examples=150, suppress_health_check=list(hypothesis.HealthCheck), deadline=None)
def test_many_modules_in_random_layouts(rng: random.Random) -> None:
    check_module(rng)


@pytest.mark.parametrize("name", ["layout-erasure", "layout-assignment", "algebraic-simplifier", "cse"])
def test_other_layouts_without_one_of_the_passes(name: str) -> None:
    """Each pass keeps the meaning by itself; only layout-normalization must run, for the code generator."""
    rng = random.Random(name)
    for _ in range(8):
        original = random_module(rng)
        module = with_random_entry_layouts(original, rng)
        arguments = random_arguments(module, 0)
        with mock.patch.dict(os.environ, HLOOM_DISABLE_PASSES=name):
            results = compile_with(module, None).execute(arguments)
        assert_same_arrays(evaluate(original, *arguments), results, 1e-4)


def check_module(rng: random.Random) -> None:
    """The evaluator after the layout passes, and the compiled program, give what the evaluator gives at first."""
    original = random_module(rng)
    module = with_random_entry_layouts(original, rng, tiled=rng.random() < 0.5)
    hypothesis.note(module.to_text())
    arguments = random_arguments(module, rng.randrange(1000))
    expected = evaluate(original, *arguments)
    preferences = random_preferences(rng, rng.choice([0.0, 0.2, 0.7]))
    optimized, _ = pipeline_with(preferences).run(module, PassOptions(verify=True))
    assert_only_borders_are_not_row_major(optimized)
    assert_same_arrays(expected, evaluate(optimized, *arguments), 1e-4)
    target = rng.choice(["cpu", "tpu"])
    assert_same_arrays(expected, compile_with(module, preferences, target).execute(arguments), 1e-4)


def assert_only_borders_are_not_row_major(module: HloModule) -> None:
    """After all passes: parameters, bitcasts, fusions that write the caller's tiles, and tuples of these at the end;
    in fused computations the arrays read or written so, and the copies from them and to them."""
    border = {Opcode.PARAMETER, Opcode.BITCAST, Opcode.FUSION, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT}
    fused = fused_computations(module)
    for computation in module.computations:
        for instruction in computation.instructions:
            if all(leaf.array_layout.is_row_major for leaf in instruction.shape.leaves()):
                continue
            if computation in fused:
                copied = instruction.opcode is Opcode.COPY and instruction.operands[0].shape != instruction.shape
                assert copied or instruction.opcode in (Opcode.PARAMETER, Opcode.TUPLE), instruction
            else:
                assert computation is module.entry and instruction.opcode in border, instruction


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", SAMPLE[::4], ids=lambda case: case.id)
def test_op_in_random_tiles(case: OpCase) -> None:
    """Parameters and results in tiles, some of them packed."""
    check(case, tiled=True)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", SAMPLE[2::4], ids=lambda case: case.id)
def test_op_in_random_tiles_for_tpu(case: OpCase) -> None:
    """And everything inside in the tiles of a TPU."""
    check(case, "tpu", tiled=True)
