"""How fast whole arrays get into their buffers: not much slower than a copy of as many bytes."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from hloom.hlo import Shape

from hloom import hlo


def _best(function: Callable[[], object], rounds: int = 5) -> float:
    """Processor seconds, so that what else the machine does counts little."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["f32[4096,4096]{1,0:T(8,128)}", "f32[4000,4100]{1,0:T(8,128)}"])
def test_64_mib_take_no_more_than_twice_a_copy(text: str) -> None:
    """`benchmarks/layouts.py` has the numbers."""
    shape = Shape.parse(text)
    array = np.ones(shape.dimensions, np.float32)
    padded = np.ones(shape.physical_form.num_elements, np.float32)
    assert _best(lambda: hlo.to_physical(array, shape)) <= 2 * _best(lambda: np.copy(padded))
