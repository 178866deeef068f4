"""Functions with the same jaxprs as in JAX, letter for letter.

    python tests/support/jaxpr_programs.py      # records JAX's texts in tests/data/jaxprs.json

A program is a function of the package (jax or hloom) and of arrays; their types follow from the arguments' names.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PATH = Path(__file__).resolve().parent.parent / "data" / "jaxprs.json"
F, INT, BOOL = np.float32, np.int32, np.bool_
TYPES = {
    "x": ((3,), F), "y": ((3,), F), "m": ((2, 3), F), "n": ((3, 2), F), "s": ((), F), "i": ((3,), INT), "k": ((), INT),
    "b": ((3,), BOOL), "c": ((3,), np.complex64), "t": ((2, 3, 4), F),
}  # fmt: skip
"""The types of arguments, by their names."""


def named(p: Any) -> dict[str, Callable[..., Any]]:
    """The programs, in the namespaces of the package `p`; an argument's name says its type."""
    jnp, lax = p.numpy, p.lax
    double = p.jit(lambda x: x * 2)
    scalar, one = jnp.float32(3), jnp.ones(1, F)

    def polynomial(x: Any) -> Any:
        return ((x * 3 + 2) * x - 1) / (x + 5)

    def two_results(x: Any, y: Any) -> Any:
        return {"a": x + y, "b": (x - y, x)}

    def newton(s: Any) -> Any:
        return lax.while_loop(lambda v: v * v > 2.5, lambda v: 0.5 * v, s)

    def captured(x: Any, s: Any) -> Any:
        return lax.while_loop(lambda v: jnp.sum(v) < s, lambda v: v + x, x)

    def running(s: Any, x: Any) -> Any:
        return lax.scan(lambda c, e: (c + e, c * e), s, x)

    def weighted(x: Any, y: Any) -> Any:
        return lax.scan(lambda c, e: (c * y + e, None), y, x)

    def backwards(m: Any) -> Any:
        return lax.scan(lambda c, e: (c * 2, e + c), m[0], m, reverse=True)

    def no_carry(x: Any) -> Any:
        return lax.scan(lambda _, e: (None, jnp.sin(e)), None, x)

    @p.custom_jvp
    def cubed(x: Any) -> Any:
        return x * x * x

    @cubed.defjvp
    def cubed_jvp(primals: Any, tangents: Any) -> Any:
        return cubed(*primals), tangents[0]

    @p.custom_vjp
    def clipped(x: Any) -> Any:
        return jnp.minimum(x, 1)

    def clipped_fwd(x: Any) -> Any:
        return clipped(x), x

    def clipped_bwd(x: Any, g: Any) -> Any:
        return (g * x,)

    clipped.defvjp(clipped_fwd, clipped_bwd)

    return {
        "custom jvp": lambda x: cubed(x),
        "batch of a custom jvp": lambda m: p.vmap(p.vmap(cubed))(m),
        "custom vjp": lambda x: clipped(x),
        "double": lambda x: x * 2,
        "scalar": lambda s: s + 1,
        "half": lambda x: 0.5 * x,
        "minus": lambda x: 1 - x,
        "sine": lambda x: jnp.sin(x) * 2 + 1,
        "cosine of sine": lambda x: jnp.cos(jnp.sin(x)),
        "negative": lambda x: -x,
        "absolute": lambda x: jnp.abs(x),
        "logarithms": lambda x: jnp.log(x) + jnp.log1p(x),
        "exponentials": lambda x: jnp.exp(x) - jnp.expm1(x),
        "hyperbolic": lambda x: jnp.tanh(x) * jnp.cosh(x) / jnp.sinh(x),
        "roots": lambda x: jnp.sqrt(x) * lax.rsqrt(x) + jnp.cbrt(x),
        "rounding": lambda x: jnp.floor(x) + jnp.ceil(x),
        "sign": lambda x: jnp.sign(x),
        "polynomial": polynomial,
        "power": lambda x: x**2.5,
        "two arrays": lambda x, y: x * y + x / y,
        "vector and scalar": lambda m, y: m * y,
        "maximum": lambda x: jnp.maximum(x, 0),
        "larger one": lambda x, y: jnp.maximum(x, y),
        "smaller one": lambda x, y: lax.min(x, y),
        "results": two_results,
        "identity": lambda x: x,
        "constant": lambda x: (x, 1.0),
        "comparisons": lambda x, y: (x < y, x >= 1, x != y),
        "logic": lambda b: ~(b & b) | b,
        "integers": lambda i: lax.shift_left(i, 1) | i,
        "finite": lambda x: jnp.isfinite(x),
        "cast": lambda x: x.astype(jnp.int32),
        "cast to float": lambda i: i.astype(jnp.float32) * 2,
        "bits": lambda x: lax.bitcast_convert_type(x, jnp.int32),
        "select": lambda b, x, y: lax.select(b, x, y),
        "clamp": lambda x: lax.clamp(0.0, x, 1.0),
        "sum": lambda m: jnp.sum(m),
        "sum of rows": lambda m: m.sum(axis=1),
        "mean": lambda m: jnp.mean(m, axis=0),
        "largest": lambda m: jnp.max(m, axis=1, keepdims=True),
        "smallest": lambda m: m.min(),
        "product": lambda x: jnp.prod(x),
        "largest's place": lambda x: jnp.argmax(x),
        "smallest's place": lambda m: jnp.argmin(m, axis=1),
        "all": lambda b: jnp.all(b),
        "any": lambda b: jnp.any(b),
        "matmul": lambda m, n: m @ n,
        "matrix and vector": lambda m, x: jnp.dot(m, x),
        "layer": lambda m, n, s: jnp.tanh(m @ n + s),
        "einsum": lambda m: jnp.einsum("ij,kj->ik", m, m),
        "transpose": lambda m: m.T,
        "permutation": lambda t: jnp.transpose(t, (2, 0, 1)),
        "reshape": lambda m: m.reshape(6),
        "new axis": lambda x: x[:, None],
        "squeeze": lambda m: jnp.squeeze(m[:1], 0),
        "first row": lambda m: m[0],
        "slice": lambda m: m[1:, ::2],
        "reverse": lambda x: lax.rev(x, (0,)),
        "concatenate": lambda x, y: jnp.concatenate([x, y]) + 1,
        "pad": lambda x: lax.pad(x, 0.0, [(1, 2, 0)]),
        "iota": lambda x: x + lax.iota(jnp.float32, 3),
        "broadcast": lambda x: jnp.broadcast_to(x, (2, 3)),
        "dynamic slice": lambda x: lax.dynamic_slice(x, (1,), (2,)),
        "update": lambda x, y: lax.dynamic_update_slice(x, y[:1], (2,)),
        "complex": lambda x: lax.complex(x, x),
        "parts": lambda c: jnp.real(c) + jnp.imag(c),
        "nested jit": p.jit(lambda x: x + 1),
        "jit twice": lambda x: double(double(x)),
        "while": newton,
        "while with constants": captured,
        "scan": running,
        "scan with constants": weighted,
        "scan backwards": backwards,
        "scan without carry": no_carry,
        "count": lambda x: lax.fori_loop(0, 5, lambda k, v: v + k, x),
        "count only": lambda x: lax.fori_loop(0, 3, lambda k, v: v * 2, x),
        "cond": lambda s, x: lax.cond(s > 0, lambda v: v + 1, lambda v: v * 2, x),
        "checkpoint": p.checkpoint(lambda x: jnp.sin(x)),
        "barrier": lambda x: lax.optimization_barrier(x),
        "stop": lambda x: lax.stop_gradient(x) * x,
        "inverse of erf": lambda x: lax.erf_inv(x) + lax.erf(x),
        "outer constant": lambda x: x + jnp.asarray(np.arange(3, dtype=F)),
        "outer scalar": lambda x: x * scalar + 2,
        "outer array of one element": lambda x: x - one,
    }


def arguments(fun: Callable[..., Any], package: str) -> list[Any]:
    """Types for a program's arguments."""
    p = importlib.import_module(package)
    code = getattr(fun, "__wrapped__", fun).__code__
    return [p.ShapeDtypeStruct(*TYPES[name]) for name in code.co_varnames[: code.co_argcount]]


def texts(package: str) -> dict[str, str]:
    """The jaxprs of all programs."""
    p = importlib.import_module(package)
    for name in ("numpy", "lax"):
        importlib.import_module(f"{package}.{name}")
    return {name: str(p.make_jaxpr(fun)(*arguments(fun, package))) for name, fun in named(p).items()}


def recorded() -> dict[str, str]:
    """JAX's texts."""
    return {k: "\n".join(v) for k, v in json.loads(PATH.read_text()).items()}


if __name__ == "__main__":
    PATH.write_text(json.dumps({k: v.splitlines() for k, v in texts("jax").items()}, indent=1) + "\n")
