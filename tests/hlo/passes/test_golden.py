"""Golden files: every pass on small programs written for it. Each program is also evaluated before and after, and
printed and parsed again; those about layouts are also compiled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hloom.hlo.custom_calls import register_custom_call, unregister_custom_call
from hloom.hlo.evaluator import evaluate
from hloom.hlo.passes.manager import FixedPoint, PassOptions, Pipeline
from hloom.hlo.passes.partition import partition
from hloom.hlo.text.parser import parse
from hloom.hlo.tpu_target import TpuTarget
from hloom.hlo.verifier import verify
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.pipeline import pipeline

from support.comparing import assert_same_arrays, assert_same_results
from support.filecheck import GoldenCase, check_output, checks_in, golden_cases
from support.partitions import run_partitioned
from support.random_modules import random_arguments

FILES = sorted((Path(__file__).parents[2] / "golden").glob("*.hlo"))
CASES = [case for file in FILES for case in golden_cases(file)]
PASSES = {p.name: p for target in ("cpu", TpuTarget(vmem_bytes=16 * 1024)) for p in pipeline(target).passes()}
"""By name; those that depend on the target are the TPU's."""
CPU_PASSES = {f"cpu:{p.name}": p for p in pipeline().passes()}
"""By how a golden file names the CPU's version of one that depends on the target."""


@pytest.fixture(autouse=True)
def twice() -> Iterator[None]:
    """A custom call that golden files may use."""
    register_custom_call("golden.twice", lambda x: x + x)
    yield
    unregister_custom_call("golden.twice")


@pytest.mark.parametrize("case", CASES, ids=[f"{c.file}-{c.number}" for c in CASES])
def test_golden(case: GoldenCase) -> None:
    module = parse(case.text)
    verify(module)
    if case.passes == ("pipeline",):
        chosen = pipeline()
    else:
        passes = tuple((PASSES | CPU_PASSES)[name] for name in case.passes)
        chosen = Pipeline("test", (FixedPoint(passes),) if case.until_settled else passes)
    after, _ = chosen.run(module, PassOptions(verify=True))
    check_output(after.to_text(), case)
    again = parse(after.to_text())
    verify(again)
    for seed in range(2):
        arguments = random_arguments(module, seed)
        if module.num_partitions > 1:
            found = partition(module, module.num_partitions)
            assert found.module.to_text() == after.to_text()
            assert_same_arrays(
                evaluate(replace(module, num_partitions=1), *arguments), run_partitioned(found, module, arguments)
            )
            continue
        assert_same_results(module, after, arguments)
        assert_same_results(module, again, arguments)


LAYOUTS = [case for case in CASES if case.file.startswith("layout")]


@pytest.mark.parametrize("case", LAYOUTS, ids=[f"{c.file}-{c.number}" for c in LAYOUTS])
def test_golden_layouts_compiled(case: GoldenCase) -> None:
    module = parse(case.text)
    arguments = random_arguments(module, 0)
    assert_same_arrays(evaluate(module, *arguments), NumbaCompiler().compile(module).execute(arguments), 1e-4)


def test_every_pass_has_a_golden_file() -> None:
    assert {p for case in CASES for p in case.passes} >= set(PASSES)


def test_checks_can_fail() -> None:
    """The matcher itself, on output that lacks, repeats or reorders expected lines."""
    text = "// CHECK: alpha\n// CHECK-NEXT: beta {{[0-9]+}}\n// CHECK-NOT: gamma\n// CHECK: delta\n"
    case = GoldenCase("x", 0, (), False, text, checks_in(text))
    check_output("alpha\nbeta 12\nother\ndelta\ngamma", case)
    for wrong in (
        "beta 1\nalpha\ndelta",
        "alpha\nother\nbeta 1\ndelta",
        "alpha\nbeta x\ndelta",
        "alpha\nbeta 1\ngamma\ndelta",
        "alpha\nbeta 1",
    ):
        with pytest.raises(AssertionError, match=r"CHECK.*\n.*found"):
            check_output(wrong, case)
