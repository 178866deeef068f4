"""Indices and shifts of any size, in every index type: on memory where an access outside of an array ends the process.

Straight, in loops that become one kernel, and mapped over a batch, where slices become gathers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import hlo, lax
from support.guarded import GuardedProgram, small_pieces

TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
N, M = 11, 7
Program = Callable[[Any, Any], Any]


def indices(dtype: str) -> np.ndarray[Any, Any]:
    """Numbers in range, around its ends, and at the ends of the type and of narrower ones."""
    ends = np.iinfo(dtype)
    near = [0, 1, 5, N - 2, N - 1, N, N + 1, -1, -2, -N, -N - 1]
    far = [ends.min, ends.min + 1, ends.max, ends.max - 1]
    far += [sign * 2**k + d for k in (7, 31, 63) for sign in (1, -1) for d in (-1, 0, 1)]
    return np.array([i for i in (*near, *far) if ends.min <= i <= ends.max], dtype)


def _gather(x: Any, i: Any, mode: Any = "clip") -> Any:
    return x.at[i].get(mode=mode)


STRAIGHT: dict[str, Program] = {
    "slices": lambda x, i: jnp.stack([lax.dynamic_slice(x, (i[k], i[-k]), (3, 2)) for k in range(len(i))]),
    "an index of each type": lambda x, i: lax.dynamic_slice(x, (i[-1], i[0] * 0 + i[1]), (4, M)),
    "updates": lambda x, i: [lax.dynamic_update_slice(x, x[:3, :2] * 2, (i[k], i[-k])) for k in range(0, len(i), 3)],
    "gather": lambda x, i: (_gather(x, i), _gather(x, i, "fill"), _gather(x, (i, i))),
    "computed indices": lambda x, i: (_gather(x, i * 3 + 1), _gather(x, -i), _gather(x, (i + 5, i - 5))),
    "scatter": lambda x, i: (x.at[i].add(x[0]), x.at[i, i].set(9), x.at[i].max(x[1], mode="clip")),
    "computed scatter": lambda x, i: (x.at[i * 3 + 1].add(x[0]), x.at[:, i - 4].mul(2)),
    "one scatter": lambda x, i: [x.at[i[k]].set(x[0], mode="drop") for k in range(0, len(i), 2)],
    "rows by vmap": lambda x, i: hloom.vmap(lambda k: lax.dynamic_index_in_dim(x, k, 0, keepdims=False))(i),
    "blocks by vmap": lambda x, i: hloom.vmap(lambda k: lax.dynamic_slice(x, (k, -k), (3, 2)))(i),
    "updates by vmap": lambda x, i: hloom.vmap(lambda k: lax.dynamic_update_slice(x, x[:2, :2] + 1, (k, k)))(i),
    "shifts": lambda x, i: (lax.shift_left(i, i[::-1]), lax.shift_right_arithmetic(i, i[::-1]),
                            lax.shift_right_logical(i[:1] + i * 0, i), i << 3, i >> 70 if i.dtype.itemsize > 1 else i),
}  # fmt: skip


def _reads(x: Any, i: Any) -> Any:
    def step(total: Any, k: Any) -> Any:
        found = lax.dynamic_index_in_dim(x, k, 0, keepdims=False) + lax.dynamic_slice(x, (k * 2, k), (1, M))[0]
        return total * 3 + found, total

    return lax.scan(step, jnp.zeros(M, x.dtype), i)


def _writes(x: Any, i: Any) -> Any:
    def body(t: Any, a: Any) -> Any:
        a = lax.dynamic_update_slice(a, a[:2, :3] + 1, (i[t], i[t] - 2))
        return a.at[i[t] + 3].add(1, mode="drop").at[t, i[t]].set(t)

    return lax.fori_loop(0, len(i), body, x)


def _shifted(x: Any, i: Any) -> Any:
    def body(t: Any, carry: Any) -> Any:
        a, total = carry
        a = lax.shift_right_arithmetic(a, i) ^ lax.shift_left(a, i[::-1]) ^ i
        return a, total + lax.dynamic_index_in_dim(x, a[t], 0, keepdims=False)

    return lax.fori_loop(0, len(i), body, (i, x[0]))


LOOPS: dict[str, Program] = {
    "reads in a loop": _reads,
    "writes in a loop": _writes,
    "shifted indices in a loop": _shifted,
    "reads in mapped loops": lambda x, i: hloom.vmap(lambda y: _reads(y, i))(jnp.stack([x, x + 1, x * 2])),
    "writes in mapped loops": lambda x, i: hloom.vmap(lambda j: _writes(x, j))(jnp.stack([i, i[::-1]])),
    "shifts in mapped loops": lambda x, i: hloom.vmap(lambda j: _shifted(x, j))(jnp.stack([i, i[::-1], i + 1])),
}
PROGRAMS = STRAIGHT | LOOPS


@pytest.mark.one_in(7)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_access_is_outside(name: str, dtype: str) -> None:
    with hloom.enable_x64(True):
        x, i = np.arange(N * M, dtype=np.int32).reshape(N, M), indices(dtype)
        module = hloom.make_hlo(PROGRAMS[name])(x, i)
        expected = hlo.evaluate(module, x, i)
        for at_end in (True, False):
            with small_pieces():
                found = GuardedProgram(module, at_end=at_end).run([x, i])
            for k, (one, other) in enumerate(zip(found, expected, strict=True)):
                np.testing.assert_array_equal(one, other, err_msg=f"result {k}")
