"""Ranges of integers: what the analysis claims is compared with what programs compute, and what it should find."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from hloom.hlo.analyses import intervals
from hloom.hlo.analyses.in_bounds import INDEXED, in_bounds, window_sizes
from hloom.hlo.analyses.intervals import TRANSFER, Range
from hloom.hlo.analyses.ranges import known_ranges
from hloom.hlo.backend import optimize
from hloom.hlo.evaluator import evaluate, evaluate_op
from hloom.hlo.ir import HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.fuse.mark_in_bounds import MarkInBounds
from hloom.hlo.passes.manager import PassOptions
from hloom.hlo.passes.simplify.range_simplifier import RangeSimplifier
from hloom.hlo.text.parser import parse
from hloom.hlo.verifier import verify

from support.comparing import assert_same_arrays
from support.integer_programs import integer_arguments, integer_program, observe

HEALTH = list(hypothesis.HealthCheck)


def check_ranges(module: HloModule, arguments: list[Any]) -> None:
    """Every value of every instruction is in its range; every index that is said to be in bounds is."""
    ranges = known_ranges(module).known

    def observer(i: HloInstruction, value: Any) -> None:
        known = ranges.get(i)
        if known is not None and value.size:
            low, high = int(value.min()), int(value.max())
            assert known.low <= low and high <= known.high, f"{i} = {value}, not in {known}"

    observe(module, arguments, observer)


@hypothesis.given(st.integers(0, 1 << 48))
@hypothesis.settings(max_examples=400, suppress_health_check=HEALTH)
def test_ranges_hold_in_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    module = integer_program(rng)
    for _ in range(2):
        check_ranges(module, integer_arguments(module, rng))
