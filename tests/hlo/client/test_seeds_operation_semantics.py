"""Every worked example of "Operation Semantics" (XLA's first documentation, 2017), in both backends and in XLA."""

from __future__ import annotations

import numpy as np
import pytest

from hloom import hlo
from support.seed_examples_elementwise import EXAMPLES as ELEMENTWISE
from support.seed_examples_movement import EXAMPLES as MOVEMENT
from support.seed_examples_programs import EXAMPLES as PROGRAMS
from support.seed_program import Example, built, check, run

EXAMPLES: tuple[Example, ...] = (*ELEMENTWISE, *MOVEMENT, *PROGRAMS)

SECTIONS = (
    "Broadcast", "Call", "Clamp", "Collapse", "Concatenate", "ConvertElementType", "Conv", "ConvWithGeneralPadding",
    "CrossReplicaSum", "CustomCall", "Dot", "Element-wise binary arithmetic operations",
    "Element-wise comparison operations", "Element-wise unary functions", "BatchNormTraining", "BatchNormInference",
    "BatchNormGrad", "GetTupleElement", "Infeed", "Map", "Pad", "Reduce", "ReducePrecision", "ReduceWindow", "Reshape",
    "Rev", "RngBernoulli", "RngNormal", "RngUniform", "SelectAndScatter", "Select", "Slice", "DynamicSlice",
    "DynamicUpdateSlice", "Sort", "Transpose", "Trans", "Tuple", "While",
)  # fmt: skip
"""The sections of the page, in all its editions."""
ELSEWHERE = {"CustomCall", "Infeed", "RngBernoulli", "RngNormal", "RngUniform"}
"""Sections with tests in `test_seeds_effects.py`."""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("backend", ["evaluator", "numba"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_example(example: Example, backend: str) -> None:
    check(run(example.program, backend), example.expected, example.tolerance)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_example_in_xla(example: Example) -> None:
    """XLA takes the text that we print, and gives what the section says."""
    pytest.importorskip("jax")
    from support.xla_oracle import run_hlo_text

    computation, values = built(example.program)
    results = iter(run_hlo_text(computation.to_text(), *values))

    def compare(expected: object) -> None:
        if isinstance(expected, tuple):
            for element in expected:
                compare(element)
        else:
            check(next(results), expected, example.tolerance)

    compare(example.expected)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_example_survives_text(example: Example) -> None:
    computation, values = built(example.program)
    module = hlo.parse(computation.to_text())
    hlo.verify(module)
    leaves = hlo.evaluate(module, *values)
    for again, first in zip(leaves, hlo.evaluate(computation.module, *values), strict=True):
        np.testing.assert_array_equal(again, first)


def test_every_section_has_an_example() -> None:
    assert {example.section for example in EXAMPLES} | ELSEWHERE == set(SECTIONS)
    assert len({example.id for example in EXAMPLES}) == len(EXAMPLES)


def test_a_wrong_answer_is_found() -> None:
    example = next(e for e in EXAMPLES if e.section == "Slice")
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        check(run(example.program, "evaluator"), example.expected + 1)
