"""Programs that several devices run: what collectives mean, on the evaluator and compiled; what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hloom.hlo import evaluate_on_devices, parse, verify
from hloom.hlo.collectives import local_device_count, set_local_device_count
from hloom.numba_backend.compiler import NumbaCompiler

from support.collective_cases import CASES, Collective, NDArray


@pytest.fixture(autouse=True, scope="module")
def _eight_devices() -> Iterator[None]:
    before = local_device_count()
    set_local_device_count(8)
    yield
    set_local_device_count(before)


def _leaves(value: Any) -> list[NDArray]:
    return list(value) if isinstance(value, tuple) else [value]


def _assert_same_bits(found: list[list[NDArray]], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for device, (results, value) in enumerate(zip(found, expected)):
        for result, wanted in zip(results, _leaves(value), strict=True):
            assert result.dtype == wanted.dtype and result.shape == wanted.shape
            assert result.tobytes() == np.ascontiguousarray(wanted).tobytes(), f"device {device}"


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_meaning(case: Collective) -> None:
    module = parse(case.text)
    verify(module)
    arguments = [[a] for a in case.arguments()]
    expected = case.meaning([a for (a,) in arguments])
    _assert_same_bits(evaluate_on_devices(module, arguments), expected)
    _assert_same_bits(NumbaCompiler().compile(module).execute_on_devices(arguments), expected)
