"""The texts of arrays, traced values and types that users print: JAX's word for word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom

PRINTS: dict[str, tuple[Callable[[Any, Callable[..., None]], Any], list[str]]] = {
    "jit": (
        lambda j, p: j.jit(lambda x, y: p(x, repr(y)))(1.0, j.numpy.arange(3)),
        ["JitTracer(~float32[]) JitTracer(int32[3])"],
    ),
    "jit of a key": (lambda j, p: j.jit(lambda k: p(k))(j.random.key(0)), ["JitTracer(key<fry>[])"]),
    "vmap": (
        lambda j, p: j.vmap(lambda x: (p(x), x)[1])(j.numpy.ones(2)),
        ["VmapTracer(aval=float32[], batched=float32[2])"],
    ),
    "grad": (
        lambda j, p: j.grad(lambda x: (p(x), x.sum())[1])(j.numpy.ones(2)),
        ["GradTracer(primal=[1. 1.], typeof(tangent)=f32[2])"],
    ),
    "grad in jit": (
        lambda j, p: j.jit(j.grad(lambda x: (p(x), x)[1]))(1.0),
        ["GradTracer(primal=JitTracer(~float32[]), typeof(tangent)=f32[])"],
    ),
    "jvp": (
        lambda j, p: j.jvp(lambda x: (p(x), x)[1], (1.0,), (2.0,)),
        ["JVPTracer(primal=1.0, tangent=2.0)"],
    ),
    "types": (
        lambda j, p: p(j.typeof(1.0), repr(j.typeof(1.0)), j.typeof(j.numpy.ones(2)), j.typeof(1).str_short()),
        ["~float32[] ShapedArray(float32[], weak_type=True) float32[2] int32[]"],
    ),
    "a long array": (
        lambda j, p: p(repr(j.numpy.arange(5.0) / 3)),
        ["Array([0.        , 0.33333334, 0.6666667 , 1.        , 1.3333334 ],      dtype=float32)"],
    ),
    "a row less": (
        lambda j, p: p(repr(j.numpy.arange(4.0) / 3)),
        ["Array([0.        , 0.33333334, 0.6666667 , 1.        ], dtype=float32)"],
    ),
    "several rows": (
        lambda j, p: p(repr(j.numpy.arange(16) * 1000000)),
        [
            "Array([       0,  1000000,  2000000,  3000000,  4000000,  5000000,",
            "        6000000,  7000000,  8000000,  9000000, 10000000, 11000000,",
            "       12000000, 13000000, 14000000, 15000000], dtype=int32)",
        ],
    ),
    "no elements": (
        lambda j, p: p(repr(j.numpy.zeros((0, 3))), j.numpy.zeros(0)),
        ["Array([], shape=(0, 3), dtype=float32) []"],
    ),
    "a place": (
        lambda j, p: p(j.numpy.arange(2).at, j.numpy.arange(2).at[0]),
        ["_IndexUpdateHelper(Array([0, 1], dtype=int32)) _IndexUpdateRef(Array([0, 1], dtype=int32), 0)"],
    ),
    "limits": (
        lambda j, p: p(j.numpy.iinfo(j.numpy.int8), j.numpy.iinfo(np.uint32).max),
        ["iinfo(min=-128, max=127, dtype=int8) 4294967295"],
    ),
}


@pytest.mark.parametrize("name", PRINTS)
@pytest.mark.parametrize("library", ["hloom", "jax"])
def test_texts(library: str, name: str) -> None:
    j = hloom if library == "hloom" else pytest.importorskip("jax")
    shown: list[str] = []
    call, wanted = PRINTS[name]
    call(j, lambda *values: shown.append(" ".join(map(str, values))))
    assert "\n".join(shown).split("\n") == wanted
