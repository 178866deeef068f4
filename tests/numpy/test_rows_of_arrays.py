"""Functions that join a sequence take an array as its rows, and do not take it apart; bits go beside their axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp

JOINS = ("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack")
SHAPES = ((5, 3), (2, 3, 4), (3, 2, 2, 2), (1, 6), (3, 0, 4), (4,))


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", JOINS)
def test_an_array_is_its_rows(name: str, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    axes: list[dict[str, Any]] = [{}]
    if name in ("concatenate", "stack"):
        axes += [{"axis": d} for d in range(-len(shape), len(shape))] + [{"axis": 0, "dtype": np.float32}]
        axes += [{"axis": None}] if name == "concatenate" else []
    for options in axes:
        try:
            expected = getattr(np, name)(list(x), **options)
        except ValueError:  # rows without dimensions, or an axis that rows do not have
            with pytest.raises(ValueError):
                getattr(jnp, name)(jnp.asarray(x), **options)
            continue
        for given in (x, jnp.asarray(x)):
            found = getattr(jnp, name)(given, **options)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype
    weak = jnp.broadcast_to(2.0, (3, 2))
    assert jnp.concatenate(weak).weak_type


@pytest.mark.parametrize("function", [jnp.concatenate, jnp.stack, lambda x: jnp.concatenate(x, 1)])
def test_the_traced_program_does_not_grow_with_the_rows(function: Callable[[Any], Any]) -> None:
    def size(rows: int) -> int:
        return len(hloom.jit(function).lower(jnp.zeros((rows, 4, 5), np.float32)).as_text().splitlines())

    assert size(3) == size(300)


def test_bits_are_not_transposed() -> None:
    x = jnp.zeros((24, 7), np.uint8)
    for function in (lambda x: jnp.unpackbits(x, axis=0), lambda x: jnp.packbits(x, axis=0)):
        assert "transpose" not in hloom.jit(function).lower(x).as_text()
