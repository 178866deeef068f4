"""Cases that convert whole arrays into their buffers and back, compared with a NumPy copy of the padded array's bytes.

They measure `hlo.to_physical` and `hlo.from_physical`, which use NumPy too: how close views and assignments come to one
`np.copy`. Both allocate their results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hloom.hlo import Shape

from hloom import hlo

from .harness import Case, Program

RNG = np.random.default_rng(4)

NDArray = np.ndarray[Any, Any]


def _case(name: str, text: str, back: bool = False) -> Callable[[], Case]:
    def case() -> Case:
        shape = Shape.parse(text)
        array = RNG.integers(0, 2, shape.dimensions).astype(shape.element.dtype)
        buffer = hlo.to_physical(array, shape)

        def hloom() -> Program:
            # The same is compared for both: the array after the way there and back.
            there_and_back = lambda: _numbers(hlo.from_physical(buffer, shape))  # noqa: E731
            if back:
                return Program(lambda: hlo.from_physical(buffer, shape), check=there_and_back)
            return Program(lambda: hlo.to_physical(array, shape), check=there_and_back)

        def numpy() -> Program:
            padded = np.ones(shape.physical_form.num_elements, array.dtype)
            return Program(lambda: np.copy(padded), check=lambda: _numbers(array))

        title = f"{'from' if back else 'to'} the buffer of {text}"
        return Case(name, title, {"hloom": hloom, "numpy": numpy})

    return case


def _numbers(array: NDArray) -> NDArray:
    return array.astype(np.float32)


CASES: dict[str, Callable[[], Case]] = {
    "layout-8x128": _case("layout-8x128", "f32[4096,4096]{1,0:T(8,128)}"),
    "layout-8x128-back": _case("layout-8x128-back", "f32[4096,4096]{1,0:T(8,128)}", back=True),
    "layout-ragged": _case("layout-ragged", "f32[4000,4100]{1,0:T(8,128)}"),
    "layout-transposed": _case("layout-transposed", "f32[4096,4096]{0,1}"),
    "layout-bf16": _case("layout-bf16", "bf16[4000,8100]{1,0:T(8,128)(2,1)}"),
    "layout-s4": _case("layout-s4", "s4[8000,8100]{1,0:T(64,128)(8,1)E(4)}"),
}
