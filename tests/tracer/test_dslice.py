"""`hloom.ds` as an index of arrays: blocks of a known size at a place that may be traced. And static bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp

X = jnp.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("start, kept", [(0, 0), (1, 1), (2, 1), (-1, 1), (-2, 1), (7, 1)])
def test_reading_moves_the_block_inside(start: int, kept: int) -> None:
    wanted = np.asarray(X)[kept : kept + 2]
    assert X[hloom.ds(start, 2)].tolist() == wanted.tolist()
    assert hloom.jit(lambda x, i: x[hloom.ds(i, 2)])(X, start).tolist() == wanted.tolist()
    found = hloom.jit(lambda x, i: x[hloom.ds(i, 2), None, ::-2])(X, start)
    assert found.tolist() == wanted[:, None, ::-2].tolist()


@pytest.mark.parametrize("start, written", [(0, 0), (1, 1), (2, None), (-2, 1), (-1, None)])
def test_writing_leaves_out_a_block_that_does_not_fit(start: int, written: int | None) -> None:
    wanted = np.array(X)
    if written is not None:
        wanted[written : written + 2, ::2] += 5

    def add(x: Any, i: Any) -> Any:
        return x.at[hloom.ds(i, 2), ::2].add(5)

    assert add(X, start).tolist() == wanted.tolist()
    assert hloom.jit(add)(X, start).tolist() == wanted.tolist()


def test_other_forms() -> None:
    assert X[0][hloom.ds(1, 3, 2)].tolist() == [1.0, 3.0, 3.0]
    assert X[hloom.ds(1, 2), jnp.array([0, 3])].tolist() == [[4.0, 7.0], [8.0, 11.0]]
    assert X[0].at[hloom.ds(3, 2)].get(mode="fill", fill_value=-1.0).tolist() == [-1.0, -1.0]
    assert hloom.vmap(lambda i: X[0][hloom.ds(i, 2)])(jnp.array([0, 2])).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    slope = hloom.grad(lambda x, i: (x[hloom.ds(i, 2)] ** 2).sum())(X[0], 1)
    assert slope.tolist() == [0.0, 2.0, 4.0, 0.0]
    assert hloom.ds(None) == slice(None) and hloom.ds(3) == hloom.ds(0, 3)
    with pytest.raises(TypeError, match="larger than the dimension, of size 3"):
        _ = X[hloom.ds(0, 4)]


@pytest.mark.parametrize(
    "index, words",
    [
        (3, "index 3 out of bounds for axis 0 with size 3"),
        (np.index_exp[:, -5], "index -5 out of bounds for axis 1 with size 4"),
        (np.index_exp[np.array([0, 1]), 4], "index 4 out of bounds for axis 1"),
    ],
)
def test_static_indices_are_checked_on_demand(index: Any, words: str) -> None:
    assert X[index].shape == X.at[index].get().shape
    hloom.config.update("jax_check_static_indices", True)
    try:
        for read in (lambda x: x[index], hloom.jit(lambda x: x[index]), lambda x: x.at[index].set(0.0)):
            with pytest.raises(IndexError, match=words):
                read(X)
    finally:
        hloom.config.update("jax_check_static_indices", False)
