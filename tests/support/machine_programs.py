"""Programs of every kind of kernel, and a process that runs them as on another machine.

`python -m support.machine_programs FILE [CPU FEATURES WORDS]` writes their results to FILE; with a CPU, code is made
for that one (LLVM's name and features), and the system says that it has these instruction sets.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import hloom
import hloom.numpy as jnp
from hloom import lax

Program = Callable[..., Any]


def _normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def _integers(low: int, high: int, *shape: int, dtype: str = "int32") -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(low, high, shape).astype(dtype)


def _complex(*shape: int) -> np.ndarray:
    return (_normal(*shape) + 1j * _normal(*shape)[..., ::-1]).astype("complex64")


def _convolve(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME")


def _newton(x: Any) -> Any:
    return lax.fori_loop(0, 20, lambda _, y: (y + x / y) / 2, jnp.ones_like(x))


def _recurrence(a: Any, b: Any) -> Any:
    def step(h: Any, row: Any) -> tuple[Any, Any]:
        h = jnp.tanh(h * row[0] + row[1])
        return h, h

    return lax.scan(step, jnp.zeros(b.shape[1:], b.dtype), (a, b))[1]


def _positive(x: Any) -> Any:
    return x @ jnp.swapaxes(x, -1, -2) + 8 * jnp.eye(x.shape[-1], dtype=x.dtype)


@dataclass(frozen=True)
class Case:
    program: Program
    arguments: tuple[np.ndarray, ...]
    tolerance: float = 2e-5
    """Of the largest element: results differ by the order of sums. 0: all bits are equal."""


CASES: dict[str, Case] = {
    "chain": Case(lambda x, y: jnp.tanh(x) * 2 + jnp.exp(-y * y), (_normal(300, 70), _normal(300, 70))),
    "chain of f64": Case(lambda x: jnp.log1p(jnp.abs(x)) * jnp.sin(x), (_normal(20_003, dtype="float64"),), 1e-13),
    "chain of bf16": Case(lambda x: jnp.tanh(x.astype("bfloat16") * 3).astype("float32"), (_normal(5001),), 1e-2),
    "operations on f16": Case(
        lambda x, y: ((x * y + x) * y - x, x / y - y * x, -(x * y) + y, (x * y + 3) * y - 5),
        (_normal(5001, dtype="float16"), _normal(5001, dtype="float16")[::-1].copy()), 0,
    ),
    "operations on bf16": Case(
        lambda x, y: [
            v.astype("float32")
            for a, b in [(x.astype("bfloat16"), y.astype("bfloat16"))]
            for v in ((a * b + a) * b - a, a / b - b * a, -(a * b) + b, (a * b + 3) * b - 5)
        ],
        (_normal(5001), _normal(5001)[::-1].copy()), 0,
    ),
    "a loop on f16": Case(
        lambda x, y: lax.scan(lambda c, row: (c * row + row, c * row - c), x[0], y),
        (_normal(70, 90, dtype="float16"), _normal(60, 90, dtype="float16")), 0,
    ),
    "exact products of f32": Case(  # so that it does not matter which of them are contracted
        lambda x, y: ((x * y + x) * y - x, x * y - y * y),
        (_integers(-30, 30, 4001).astype("float32"), _integers(-30, 30, 4001).astype("float32")[::-1].copy()), 0,
    ),
    "conversions": Case(
        lambda x: (x.astype("int32"), x.astype("int8"), x.astype("float16"), (x * 1e30).astype("uint32")),
        (_normal(999) * 100,), 0,
    ),
    "integers that wrap": Case(
        lambda x, y: (x + y > x, x * y * x, -x - 1 < x, lax.div(x, y), lax.rem(x, y), abs(x)),
        (_integers(-(2**31), 2**31 - 1, 4097), _integers(-(2**31), 2**31 - 1, 4097)[::-1].copy()), 0,
    ),
    "complex": Case(lambda x: (x * x + 1j) / (1 + jnp.abs(x)), (_complex(999),)),
    "bits": Case(lambda x: (x ^ (x >> 3)) * 0x9E37 + (x << 5), (_integers(-(2**31), 2**31 - 1, 4097),), 0),
    "softmax": Case(hloom.nn.softmax, (_normal(90, 1003),)),
    "sums of columns": Case(lambda x: (x.sum(0), (x * x).mean(0)), (_normal(700, 130),)),
    "sum of all": Case(lambda x: jnp.sum(jnp.exp(-jnp.abs(x))), (_normal(1_000_003),)),
    "largest": Case(lambda x: (x.argmax(1), x.argmin(0), x.max()), (_normal(64, 777),), 0),
    "product": Case(lambda x, y: jnp.maximum(x @ y, 0), (_normal(257, 300), _normal(300, 129))),
    "matrix and vector": Case(lambda x, y: (x @ y, y @ x.T), (_normal(1000, 513), _normal(513))),
    "small products": Case(lambda x, y: x @ y, (_normal(500, 5, 7), _normal(500, 7, 3))),
    "product of s8": Case(
        lambda x, y: lax.dot(x, y, preferred_element_type=jnp.int32),
        (_integers(-128, 128, 90, 133, dtype="int8"), _integers(-128, 128, 133, 70, dtype="int8")), 0,
    ),
    "product of bf16": Case(
        lambda x, y: (x.astype("bfloat16") @ y.astype("bfloat16")).astype("float32"),
        (_normal(100, 65), _normal(65, 33)), 1e-2,
    ),
    "convolution": Case(_convolve, (_normal(3, 16, 19, 23), _normal(32, 16, 3, 3))),
    "gradient of a convolution": Case(
        lambda x, w: hloom.grad(lambda x, w: (_convolve(x, w) ** 2).sum(), (0, 1))(x, w),
        (_normal(2, 8, 12, 13), _normal(8, 8, 3, 3)),
    ),
    "pools": Case(
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"),
        (_normal(4, 9, 28, 31),), 0,
    ),
    "transpose": Case(lambda x, y: x.T + y, (_normal(301, 203), _normal(203, 301)), 0),
    "slices": Case(lambda x: (x[::2, ::3], x[:, ::-1]), (_normal(101, 99),), 0),
    "concatenation": Case(lambda x: (jnp.concatenate([x, x[:5]]), jnp.pad(x, 2)), (_normal(101, 99),), 0),
    "gather": Case(lambda x, i: x[i], (_normal(500, 33), _integers(0, 500, 4000)), 0),
    "scatter": Case(lambda x, i: jnp.zeros(100).at[i].add(x), (_normal(4000), _integers(0, 100, 4000))),
    "sort": Case(lambda x: (jnp.sort(x), jnp.argsort(x)), (_normal(70_001),), 0),
    "sort of rows": Case(lambda x: jnp.sort(x, 1), (_integers(-50, 50, 80, 37),), 0),
    "top": Case(lambda x: lax.top_k(x, 7), (_normal(40, 1000),), 0),
    "cumulative": Case(lambda x: (jnp.cumsum(x, 1), lax.cummax(x, 0)), (_normal(60, 611),), 1e-4),
    "random": Case(lambda: hloom.random.bits(hloom.random.key(3), (5000,)), (), 0),
    "random normal": Case(lambda: hloom.random.normal(hloom.random.key(3), (5000,)), ()),
    "fft": Case(lambda x: (jnp.fft.fft(x), jnp.fft.rfft(x.real)), (_complex(30, 120),)),
    "cholesky": Case(lambda x: jnp.linalg.cholesky(_positive(x)), (_normal(70, 8, 8),), 1e-4),
    "solve": Case(lambda x, b: jnp.linalg.solve(_positive(x), b), (_normal(60, 60), _normal(60, 2)), 1e-3),
    "loop": Case(_newton, (np.abs(_normal(1234)) + 1,)),
    "scan": Case(_recurrence, (_normal(50, 30), _normal(50, 30)), 1e-4),
}  # fmt: skip


def results(case: Case) -> list[np.ndarray]:
    """The arrays of the case's result, by the backend that is set."""
    with hloom.enable_x64(any(array.dtype == np.float64 for array in case.arguments)):
        return [np.asarray(leaf) for leaf in hloom.tree.leaves(hloom.jit(case.program)(*case.arguments))]


def _as_on(cpu: str, features: str, words: str) -> None:
    """From now on this process is on a machine with this CPU."""
    from hloom.numba_backend import cpus, machine
    from hloom.numba_backend.runtime import llvm_backend, store

    triple, *_ = llvm_backend.host_target()
    described = f"another machine\nflags: {words}"
    llvm_backend._native_target.cache_clear()
    llvm_backend._native_target = lambda: (triple, cpu, features)  # type: ignore[assignment]
    llvm_backend.target_description.cache_clear()
    cpus.cpu_description = store.cpu_description = lambda: described
    machine.cpu_description = lambda: described
    machine.this_machine.cache_clear()


if __name__ == "__main__":
    file, *machine = sys.argv[1:]
    if machine:
        _as_on(*machine)
    found = {f"{name}/{k}": array for name, case in CASES.items() for k, array in enumerate(results(case))}
    np.savez(file, **found)
