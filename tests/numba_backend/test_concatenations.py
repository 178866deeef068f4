"""Concatenations of many parts: values, and how many kernels they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax

MANY = (17, 65, 150)
"""More than 16 parts are a nest each; more than 64 are made in groups."""

SHAPES: dict[str, tuple[int, Callable[[int], tuple[int, ...]]]] = {
    # the axis, and the shape of each part
    "vectors": (0, lambda k: (3 + k % 5,)),
    "single elements": (0, lambda k: (1,)),
    "some empty": (0, lambda k: (k % 3,)),
    "rows": (0, lambda k: (1, 40)),
    "several rows": (0, lambda k: (1 + k % 4, 7)),
    "columns": (1, lambda k: (30, 1)),
    "several columns": (1, lambda k: (5, 2 + k % 20)),
    "in the middle": (1, lambda k: (3, 1 + k % 2, 6)),
    "last of three": (2, lambda k: (3, 4, 1 + k % 3)),
    "shared by threads": (0, lambda k: (1, 5000)),
    "columns shared by threads": (1, lambda k: (5000, 1)),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("count", MANY)
@pytest.mark.parametrize("name", SHAPES)
def test_values(name: str, count: int) -> None:
    axis, shape = SHAPES[name]
    parts = [np.arange(np.prod(shape(k)), dtype=np.float32).reshape(shape(k)) + 100 * k for k in range(count)]
    found = hloom.jit(lambda *p: jnp.concatenate([2 * x for x in p], axis))(*parts)
    np.testing.assert_array_equal(found, np.concatenate([2 * x for x in parts], axis))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float16", "bfloat16", "float32", "complex64"])
def test_types(dtype: str) -> None:
    x = jnp.arange(40).astype(dtype)
    found = hloom.jit(lambda x: jnp.stack([x[k] for k in range(39, -1, -1)]))(x)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(x)[::-1])


USES: dict[str, Callable[[Any], Any]] = {
    "its own": lambda p: jnp.stack(p),
    "of something computed": lambda p: jnp.stack([jnp.sin(x) * k for k, x in enumerate(p)]),
    "with parts in common": lambda p: jnp.stack([p[0] + p[1], p[0] + p[1], *p[2:]]),
    "read by more": lambda p: jnp.sum(jnp.tanh(jnp.stack(p)), axis=0),
    "transposed": lambda p: jnp.stack(p, -1).T[::2],
    "of concatenations": lambda p: jnp.concatenate([jnp.stack(p), jnp.stack(p[::-1]) * 3]),
    "updated": lambda p: jnp.stack(p).at[3].add(p[0]),
    "of columns": lambda p: jnp.stack(p, -1),
    "in a loop": lambda p: lax.fori_loop(0, 3, lambda i, s: jnp.stack([s[k] * 0.5 + s[k - 1] for k in range(len(p))]),
                                         jnp.stack(p)),
    "its gradient": lambda p: jnp.stack(hloom.grad(lambda q: jnp.sum(jnp.stack(q) ** 2))(p)),
    "batched": lambda p: hloom.vmap(lambda *q: jnp.stack(q))(*p),
}  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", ["cpu", "tpu"])
@pytest.mark.parametrize("name", USES)
def test_uses(name: str, target: str) -> None:
    parts = [jnp.arange(6.0) + k for k in range(40)]
    expected = USES[name](parts)
    found = hloom.jit(lambda *p: USES[name](list(p))).lower(*parts).compile(target=target)(*parts)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_entries_are_straight_code() -> None:
    """The entries of a model's equations are one kernel without loops and choices."""

    def f(x: Any) -> Any:
        return jnp.array([x[k] * x[(k + 1) % 40] - jnp.sin(x[0]) for k in range(40)])

    compiled = hloom.jit(f).lower(jnp.ones(40)).compile()
    texts = [text for text in compiled.kernels().values() if "concatenate" in text]
    assert len(texts) == 1 and len(compiled.kernels()) <= 2
    assert " for " not in texts[0] and " if " not in texts[0]
