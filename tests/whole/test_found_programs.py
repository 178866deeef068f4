"""Programs that the fuzzer found, made small: each runs in all ways, on the numbers that showed a defect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hloom.hlo.text.parser import parse

from tools.fuzz import module_runs
from tools.fuzz.case import Verdict

PROGRAMS: dict[str, tuple[str, list[np.ndarray[Any, Any]]]] = {
    "a logistic whose exponential is infinite": (
        "{ x = f32[6] parameter(0)  ROOT y = f32[6] logistic(x) }",
        [np.float32([-95, -100.5, 95, -0.0, np.nan, -np.inf])],
    ),
    "a quotient of huge parts": (
        "{ x = c64[2] parameter(0)  z = c64[2] parameter(1)  ROOT y = c64[2] divide(x, z) }",
        [np.complex64([3e38 + 3e-20j, 2e38 + 3e38j]), np.complex64([1e-30 + 1e12j, 1.9 - 1.9j])],
    ),
    "a quotient of subnormal parts": (
        "{ x = c128[2] parameter(0)  z = c128[2] parameter(1)  ROOT y = c128[2] divide(x, z) }",
        [np.array([5e-324 + 1e-320j, 2e-310j]), np.array([1e-322 + 3e-323j, 1e-200 + 1e-100j])],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_ways_agree(name: str) -> None:
    entry, inputs = PROGRAMS[name]
    module = parse(f"HloModule m\nENTRY e {entry}")
    outcome = module_runs.run(module, inputs, {}, lambda stage: None)
    assert outcome.verdict is Verdict.OK, outcome.message
