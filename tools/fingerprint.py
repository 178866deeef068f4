#!/usr/bin/env python3
"""The library's results for some 6,500 programs, as text: written to a file once, compared with it after a change.

A change that should only move code leaves every text as it was: modules as traced, printed and optimised for each
target, passes, memory, kernels, the rows of the native program (its instructions), and the evaluator's results.

    python tools/fingerprint.py write FILE      # before the change
    python tools/fingerprint.py compare FILE    # after it: says what differs; exit code 1 if anything does

This looks at the library that the interpreter imports, with the tests of that library's repository, wherever this file
is. LLVM compiles nothing here, so changes in the machine code of a kernel's text do not show; the tests check those.
"""

from __future__ import annotations

import argparse
import difflib
import gzip
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

os.environ.setdefault("HLOOM_NUM_THREADS", "2")  # read when a program is made
import hloom

ROOT = Path(hloom.__file__).resolve().parent.parent
os.environ.setdefault("HLOOM_CACHE_DIR", str(ROOT / "build" / "test-kernels"))
sys.path.append(str(ROOT / "tests"))

import hloom.numpy as jnp  # noqa: E402
from hloom import hlo, lax, nn, random  # noqa: E402
from hloom.backend_check.op_table import CASES, OpCase, build_module, make_inputs  # noqa: E402
from interop.archive import Recorded, read  # noqa: E402

TARGETS = ("cpu", "tpu")
WORKERS = 2
SHOWN_CASES, SHOWN_LINES = 40, 40
"""How many differing cases are shown, and how many lines of each difference."""

Parts = Iterator[tuple[str, str]]
"""A case's texts with their names, in the order in which the library makes them."""
Fingerprint = dict[str, dict[str, str]]
"""The parts of each case."""


# ---- programs written in Python

_ROW, _MATRIX, _KEY = "f32[16]", "f32[8,16]", "u32[2]"
_LAYERS = [{"w": "f32[12,20]", "b": "f32[20]"}, {"w": "f32[20,5]", "b": "f32[5]"}]


def _network(layers: Any, x: Any) -> Any:
    for layer in layers[:-1]:
        x = nn.relu(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def _loss(layers: Any, x: Any, labels: Any) -> Any:
    return -jnp.mean(jnp.sum(nn.log_softmax(_network(layers, x)) * nn.one_hot(labels, 5), axis=1))


def _train(layers: Any, x: Any, labels: Any) -> Any:
    value, gradient = hloom.value_and_grad(_loss)(layers, x, labels)
    return hloom.tree.map(lambda p, g: p - 0.1 * g, layers, gradient), value


def _adam(state: Any, x: Any, labels: Any) -> Any:
    layers, first, second, step = state
    gradient = hloom.grad(_loss)(layers, x, labels)
    first = hloom.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = hloom.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
    scale = 0.01 * jnp.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
    layers = hloom.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), layers, first, second)
    return layers, first, second, step + 1


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), v)


def _layer_norm(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def _recurrent(w: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = jnp.tanh(w @ h + x)
        return h, h.sum()

    return lax.scan(step, jnp.zeros(w.shape[0]), xs)


def _lstm(w: Any, xs: Any) -> Any:
    def step(state: Any, x: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(w @ jnp.concatenate([h, x]), 4)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        return (nn.sigmoid(o) * jnp.tanh(c), c), c[0]

    (h, _), firsts = lax.scan(step, (jnp.zeros(4), jnp.zeros(4)), xs, reverse=True)
    return h.sum() + firsts.sum()


def _runge_kutta(y: Any, steps: int) -> Any:
    def slope(y: Any) -> Any:
        return jnp.stack([y[1], (1 - y[0] ** 2) * y[1] - y[0]])

    def step(_: Any, y: Any) -> Any:
        a = slope(y)
        b = slope(y + 0.05 * a)
        c = slope(y + 0.05 * b)
        return y + 0.1 / 6 * (a + 2 * b + 2 * c + slope(y + 0.1 * c))

    return lax.fori_loop(0, steps, step, y)


def _newton(x: Any) -> Any:
    def better(state: Any) -> Any:
        guess, _, count = state
        return guess - (guess**2 - x) / (2 * guess), guess, count + 1

    return lax.while_loop(lambda s: (jnp.abs(s[0] - s[1]) > 1e-6) & (s[2] < 50), better, (x, x + 1, 0))


def _cholesky(a: Any) -> Any:
    """Column by column, with traced indices."""

    def column(j: Any, lower: Any) -> Any:
        rest = a[:, j] - lower @ lower[j]
        below = jnp.arange(a.shape[0]) >= j
        return lower.at[:, j].set(jnp.where(below, rest / jnp.sqrt(rest[j]), 0))

    return lax.fori_loop(0, a.shape[0], column, jnp.zeros_like(a))


@hloom.custom_jvp
def _logistic(x: Any) -> Any:
    return 1 / (1 + jnp.exp(-x))


@_logistic.defjvp
def _logistic_jvp(primals: Any, tangents: Any) -> Any:
    y = _logistic(*primals)
    return y, y * (1 - y) * tangents[0]


@partial(hloom.custom_vjp, nondiff_argnums=(1,))
def _clipped(x: Any, limit: float) -> Any:
    return x * 1


_clipped.defvjp(lambda x, limit: (_clipped(x, limit), ()), lambda limit, _, g: (jnp.clip(g, -limit, limit),))


def _halves(x: Any) -> Any:
    return x if x.shape[0] == 1 else jnp.concatenate([_halves(x[::2]), -_halves(x[1::2])])


def _constants(x: Any) -> Any:
    return x + np.arange(16, dtype=np.float32), jnp.asarray([1, 2, 3]), 2.5, True


def _updates(x: Any, i: Any, v: Any) -> Any:
    return x.at[1].set(v), x.at[i].add(v), x.at[2:5, ::3].multiply(2), x.at[-1, i].max(0.5), x.at[..., 0].apply(jnp.sin)


def _slices(x: Any, i: Any) -> Any:
    return x[3], x[1:-1, ::-2], x[..., None, 2], x[i], x[i, 1:4], x[-1, -1], x[:, i]


def _lax_movement(x: Any, i: Any, update: Any) -> Any:
    padded, repeated = lax.pad(x, jnp.float32(1), ((1, 2, 1), (-1, 0, 0))), lax.broadcast_in_dim(x, (2, 8, 16), (1, 2))
    updated, part = lax.dynamic_update_slice(x, update, (i, i)), lax.dynamic_slice(x, (i, 2), (3, 4))
    return padded, repeated, updated, part, lax.rev(x, (1,))


def _sum_of(f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of everything that `f` returns, so that it can be differentiated."""
    return lambda *args: sum(jnp.sum(y * y) for y in hloom.tree.leaves(f(*args)))


def _gradients(f: Callable[..., Any], *argnums: int) -> Callable[..., Any]:
    return hloom.grad(_sum_of(f), argnums or 0)


def _switched(i: Any, x: Any) -> Any:
    return lax.switch(i, [jnp.sin, lambda y: y * y, lambda y: lax.cond(y.sum() > 0, jnp.exp, jnp.cos, y)], x)


def _drawn(key: Any) -> Any:
    a, b, c = random.split(key, 3)
    return random.normal(a, (50,)), random.uniform(b, (7, 9), minval=-1), random.fold_in(c, 5), random.bits(c, (3,))


def _drawn_others(key: Any) -> Any:
    shape = (4, 5)
    draws = (random.gumbel, random.exponential, random.laplace, random.logistic, random.rademacher)
    drawn = [draw(random.fold_in(key, n), shape) for n, draw in enumerate(draws)]
    return *drawn, random.bernoulli(key, 0.3, shape), random.truncated_normal(key, -1, 2, shape)


Program = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments: shapes as text, in containers; numbers are passed as they are."""

PROGRAMS: dict[str, Program] = {
    "arithmetic": (lambda x, y: (x * 2 + y / 3 - x**2, -x % 3, abs(x) // y, 1 - x), (_MATRIX, _ROW)),
    "promotion": (lambda i, x, h: (i + x, x * 2, i / 2, h + 1.5, h + x, i + True), ("s32[3]", "f32[3]", "bf16[3]")),
    "comparisons": (lambda x, y: jnp.where((x > y) & ~(x == 1), x, jnp.maximum(y, 0)), (_MATRIX, _ROW)),
    "integers": (lambda a, b: (a // b, a % b, a << 2, a >> b, a & b, ~a, divmod(a, 7)), ("s32[20]", "s32[20]")),
    "bits": (lambda a: (lax.population_count(a), lax.clz(a), lax.bitcast_convert_type(a, jnp.float32)), ("u32[20]",)),
    "elementary": (
        lambda x: (jnp.tanh(x) * jnp.exp(x), jnp.log1p(x * x), jnp.arctan2(x, 2), jnp.hypot(x, 1)),
        (_MATRIX,),
    ),
    "special": (lambda x: (lax.erf(x), lax.erf_inv(x), jnp.cbrt(x), jnp.logaddexp(x, 1), jnp.sinc(x)), (_MATRIX,)),
    "rounding": (lambda x: (jnp.round(x, 2), jnp.floor(x), jnp.trunc(x), jnp.fmod(x, 2), jnp.copysign(x, -1)), (_ROW,)),
    "complex": (lambda x: (jnp.exp(1j * x) * x, jnp.angle(x + 1j), jnp.conj(x * 1j).imag), (_ROW,)),
    "conversions": (
        lambda x: [x.astype(t) for t in ("float16", "bfloat16", "int8", "uint32", bool, "complex64")],
        (_ROW,),
    ),
    "small types": (lambda x, y: (x * y + 1, (x @ y.T).astype("float32")), ("f8e4m3fn[4,6]", "f8e4m3fn[4,6]")),
    "sums": (lambda x: (x.sum(0), x.mean(), x.var(1), jnp.std(x), x.prod(1), jnp.average(x, 0)), (_MATRIX,)),
    "extremes": (lambda x: (x.max(), x.min(0), x.argmax(1), x.argmin(), jnp.ptp(x, 1), x.any(), x.all(1)), (_MATRIX,)),
    "running": (
        lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1, reverse=True), lax.cumlogsumexp(x)),
        (_MATRIX,),
    ),
    "nan": (lambda x: (jnp.nanmean(x, 1), jnp.nanmax(x), jnp.nan_to_num(x), jnp.isclose(x, 1)), (_MATRIX,)),
    "norms": (lambda x: (jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1), jnp.linalg.vector_norm(x, ord=1)), (_MATRIX,)),
    "powers of a matrix": (
        lambda x: (jnp.linalg.matrix_power(x, 5), jnp.linalg.multi_dot([x, x, x[:, :2]])),
        ("f32[4,4]",),
    ),
    "products": (
        lambda a, b: (a @ b, jnp.dot(a, b[:, 0]), jnp.inner(a, a), jnp.outer(a[0], b[:, 0])),
        (_MATRIX, "f32[16,8]"),
    ),
    "batched product": (lambda a, b: (a @ b, jnp.vecdot(a, a), jnp.matmul(a[0], b)), ("f32[3,4,5]", "f32[3,5,6]")),
    "half product": (lambda a, b: jnp.tanh(a @ b) + 1, ("bf16[8,16]", "bf16[16,8]")),
    "product of integers": (lambda a, b: a @ b, ("s32[4,5]", "s32[5,6]")),
    "einsum": (lambda a, b: (jnp.einsum("ijk,lkj->il", a, b), jnp.einsum("iji->j", a)), ("f32[4,5,4]", "f32[6,4,5]")),
    "einsum of three": (partial(jnp.einsum, "ij,jk,kl->il"), ("f32[4,5]", "f32[5,60]", "f32[60,3]")),
    "tensordot": (lambda a, b: (jnp.tensordot(a, b, 2), jnp.kron(a[0], b[..., 0])), ("f32[3,4,5]", "f32[4,5,2]")),
    "dot_general": (lambda a, b: lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,)))), ("f32[3,4,5]", "f32[3,5,6]")),
    "movement": (
        lambda x: (jnp.flip(x.T), jnp.roll(x, 3, 1), jnp.rot90(x), jnp.moveaxis(x.reshape(2, 4, 16), 2, 0)),
        (_MATRIX,),
    ),
    "joining": (
        lambda x: (jnp.concatenate([x, 2 * x]), jnp.stack([x, x], 1), jnp.pad(x, 2), jnp.tile(x, (2, 1))),
        (_MATRIX,),
    ),
    "parting": (lambda x: (*jnp.split(x, 4), *jnp.array_split(x, 3, 1), jnp.repeat(x, 2, 0), jnp.diff(x)), (_MATRIX,)),
    "triangles": (
        lambda x: (jnp.tril(x), jnp.triu(x, 1), jnp.trace(x), jnp.diagonal(x), jnp.diag(x[0])),
        ("f32[6,6]",),
    ),
    "creation": (
        lambda: (
            jnp.linspace(0, 1, 50),
            jnp.arange(3, 40, 4),
            jnp.eye(4, 5),
            jnp.meshgrid(jnp.arange(3.0), jnp.ones(2)),
        ),
        (),
    ),
    "dynamic linspace": (
        lambda a, b: (jnp.linspace(a, b, 7), jnp.logspace(a, b, 5), jnp.full_like(a, 3)),
        ("f32[]", "f32[]"),
    ),
    "slices": (_slices, (_MATRIX, "s32[]")),
    "updates": (_updates, (_MATRIX, "s32[]", "f32[]")),
    "halves": (_halves, (_ROW,)),
    "lax movement": (_lax_movement, (_MATRIX, "s32[]", "f32[2,3]")),
    "lax reduction": (lambda x: lax.reduce(x, np.float32(1), lambda a, b: a * b + a, (1,)), (_MATRIX,)),
    "lax selection": (
        lambda p, x, y: (lax.select(p, x, y), lax.clamp(0.0, x, 1.0), lax.nextafter(x, y)),
        ("pred[8]", "f32[8]", "f32[8]"),
    ),
    "polynomial": (lambda p, x: jnp.polyval(p, x), ("f32[6]", _ROW)),
    "constants": (_constants, (_ROW,)),
    "no elements": (lambda x: (x + 1, x.sum(), x @ x.T, jnp.concatenate([x, x])), ("f32[0,4]",)),
    "softmax": (lambda x: (nn.softmax(x), nn.log_softmax(x, 0), nn.logsumexp(x, 1)), (_MATRIX,)),
    "activations": (
        lambda x: (nn.gelu(x), nn.silu(x), nn.elu(x), nn.softplus(x), nn.leaky_relu(x), nn.glu(x)),
        (_MATRIX,),
    ),
    "layer norm": (_layer_norm, (_MATRIX,)),
    "attention": (_attention, ("f32[2,6,3,8]",) * 3),
    "network": (_network, (_LAYERS, "f32[9,12]")),
    "initializers": (
        lambda k: (nn.initializers.he_normal()(k, (4, 6)), nn.initializers.glorot_uniform()(k, (4, 6))),
        (_KEY,),
    ),
    "random": (_drawn, (_KEY,)),
    "other distributions": (_drawn_others, (_KEY,)),
    "random integers": (
        lambda k: (random.randint(k, (20,), -3, 17), random.randint(k, (4,), 0, 200, "uint8")),
        (_KEY,),
    ),
    "random choices": (
        lambda k, p: (random.categorical(k, p), random.categorical(k, p, axis=0), random.gumbel(k, (3,))),
        (_KEY, _MATRIX),
    ),
    "gradient": (hloom.grad(lambda x: jnp.tanh(x).sum()), (_ROW,)),
    "gradients of arithmetic": (
        _gradients(lambda x, y: (x / y, x**y, jnp.maximum(x, y), jnp.where(x > 0, x, y)), 0, 1),
        (_MATRIX, _ROW),
    ),
    "gradients of reductions": (
        _gradients(lambda x: (x.max(0), x.prod(1), x.var(), jnp.cumsum(x, 1), nn.logsumexp(x))),
        (_MATRIX,),
    ),
    "gradients of movement": (
        _gradients(lambda x: (x[1:5, ::2], jnp.pad(x.T, 1), jnp.roll(x, 2), x.reshape(-1))),
        (_MATRIX,),
    ),
    "gradients of updates": (
        _gradients(lambda x, v, i: (x.at[i].set(v), x.at[1:3].multiply(v), x[i]), 0, 1),
        (_MATRIX, "f32[]", "s32[]"),
    ),
    "gradients of products": (
        _gradients(lambda a, b: (a @ b, jnp.einsum("ij,jk->k", a, b)), 0, 1),
        (_MATRIX, "f32[16,8]"),
    ),
    "gradient of attention": (_gradients(_attention, 0, 1, 2), ("f32[2,6,3,8]",) * 3),
    "gradient of layer norm": (_gradients(_layer_norm), (_MATRIX,)),
    "value and auxiliary": (hloom.value_and_grad(lambda x: (jnp.sin(x).sum(), {"y": x * 2}), has_aux=True), (_ROW,)),
    "stopped gradient": (hloom.grad(lambda x: (x * lax.stop_gradient(jnp.exp(x))).sum()), (_ROW,)),
    "complex gradient": (hloom.grad(lambda x: jnp.abs(jnp.exp(1j * x)).sum()), (_ROW,)),
    "jvp": (lambda x, t: hloom.jvp(lambda x: jnp.sin(x) * x, (x,), (t,)), (_ROW, _ROW)),
    "vjp": (lambda x, t: hloom.vjp(lambda x: (jnp.sin(x), x.sum()), x)[1]((t, t[0])), (_ROW, _ROW)),
    "linearize": (lambda x, t: hloom.linearize(lambda x: jnp.exp(x) / x, x)[1](t), (_ROW, _ROW)),
    "jacobians": (lambda x: (hloom.jacfwd(jnp.cumsum)(x), hloom.jacrev(lambda y: jnp.outer(y, y))(x)), ("f32[5]",)),
    "hessian": (hloom.hessian(lambda x: (jnp.sin(x) * x**2).sum() * x[0]), ("f32[5]",)),
    "third derivative": (hloom.grad(hloom.grad(hloom.grad(lambda x: jnp.tanh(x) * x))), ("f32[]",)),
    "branch": (lambda p, x: lax.cond(p, jnp.sin, lambda y: y * 2, x), ("pred[]", _ROW)),
    "branches": (_switched, ("s32[]", _ROW)),
    "gradient of branches": (_gradients(_switched, 1), ("s32[]", _ROW)),
    "while": (_newton, ("f32[]",)),
    "jvp of while": (lambda x: hloom.jvp(lambda x: _newton(x)[0], (x,), (x,)), ("f32[]",)),
    "fori": (partial(_runge_kutta, steps=20), ("f32[2]",)),
    "fori to a traced bound": (lambda n, x: lax.fori_loop(2, n, lambda i, y: y * 1.5 + i, x), ("s32[]", _ROW)),
    "gradient of fori": (_gradients(partial(_runge_kutta, steps=20)), ("f32[2]",)),
    "cholesky in a loop": (_cholesky, ("f32[6,6]",)),
    "gradient of a loop with updates": (_gradients(_cholesky), ("f32[6,6]",)),
    "scan": (_recurrent, ("f32[6,6]", "f32[10,6]")),
    "gradient of scan": (_gradients(_recurrent, 0, 1), ("f32[6,6]", "f32[10,6]")),
    "gradient of a reversed scan": (hloom.grad(_lstm), ("f32[16,7]", "f32[9,3]")),
    "second derivative of scan": (
        hloom.grad(lambda w, x: hloom.grad(_sum_of(_recurrent))(w, x).sum()),
        ("f32[3,3]", "f32[4,3]"),
    ),
    "scan without inputs": (lambda x: lax.scan(lambda c, _: (c * 2, c), x, None, length=5), ("f32[]",)),
    "map": (lambda x: lax.map(lambda row: row / row.sum(), x), (_MATRIX,)),
    "checkpoint": (hloom.grad(lambda x: hloom.checkpoint(lambda y: jnp.sin(jnp.exp(y)))(x).sum()), (_ROW,)),
    "checkpoint in scan": (
        hloom.grad(lambda x: lax.scan(hloom.checkpoint(lambda c, y: (jnp.sin(c * y), c)), 1.0, x)[0]),
        (_ROW,),
    ),
    "custom jvp": (lambda x: (_logistic(x), hloom.grad(lambda y: _logistic(y).sum())(x)), (_ROW,)),
    "custom vjp": (hloom.grad(lambda x: (_clipped(x, 0.5) ** 2).sum()), (_ROW,)),
    "nested jit": (lambda x: hloom.jit(jnp.sin)(x) + hloom.jit(lambda y: hloom.jit(jnp.cos)(y) * 2)(x), (_ROW,)),
    "inlined jit": (lambda x: hloom.jit(lambda y: y * 2 + 1, inline=True)(x), (_ROW,)),
    "gradient of nested jit": (hloom.grad(lambda x: hloom.jit(lambda y: jnp.sin(y) * y)(x).sum()), (_ROW,)),
    "static argument": (hloom.jit(lambda x, n: jnp.tile(x, n) ** n, static_argnums=1), (_ROW, 3)),
    "donated argument": (hloom.jit(lambda x, y: (x + y, x.sum()), donate_argnums=0), (_MATRIX, _MATRIX)),
    "weak argument": (lambda x, n: (x * n, n + 1), ("bf16[4]", 2.0)),
    "barrier": (lambda x: lax.optimization_barrier((x + 1, x * 2)), (_ROW,)),
    "containers": (
        lambda d, *rest, scale=2.0: {"a": d["x"] * scale, "b": [d["y"][0], rest]},
        ({"x": _ROW, "y": (_MATRIX, None)}, _KEY),
    ),
    "training step": (_train, (_LAYERS, "f32[9,12]", "s32[9]")),
    "training step of Adam": (
        hloom.jit(_adam, donate_argnums=0),
        ((_LAYERS, _LAYERS, _LAYERS, "s32[]"), "f32[9,12]", "s32[9]"),
    ),
}

WIDE: dict[str, Program] = {
    "double precision": (lambda x, n: (jnp.exp(x) @ x, n + 1, x.astype(int)), ("f64[5,5]", "s64[]")),
    "gradient in double precision": (hloom.grad(_lstm), ("f64[16,7]", "f64[9,3]")),
    "random doubles": (lambda k: (random.normal(k, (5,)), random.randint(k, (5,), 0, 9)), (_KEY,)),
}
"""Programs under `enable_x64`."""


# ---- what there is to compare


def cases() -> dict[str, Callable[[], Parts]]:
    """Every case by name."""
    found: dict[str, Callable[[], Parts]] = {f"op {case.id}": partial(_of_op, case) for case in CASES}
    for path in sorted((ROOT / "tests").rglob("*.hlo")):
        for number, text in enumerate(path.read_text().split(_NEXT_MODULE)):
            found[f"file {path.parent.name}/{path.stem} {number}"] = partial(_of_text, text)
    for one in read().values():
        found[f"JAX {one.id}"] = partial(_of_recorded, one)
        if one.optimized is not None:
            found[f"XLA {one.id}"] = partial(_of_text, one.optimized)
    found |= {f"program {name}": partial(_of_program, *program) for name, program in PROGRAMS.items()}
    found |= {f"program {name}": partial(_of_program, *program, wide=True) for name, program in WIDE.items()}
    return found


_cases = cache(cases)
_NEXT_MODULE = "// -----\n"
"""The line between the modules of a file in `tests/golden`."""


def _of_op(case: OpCase) -> Parts:
    module = build_module(case)
    yield from _of_module(module)
    if case.opcode is not hlo.Opcode.RNG_GET_AND_UPDATE_STATE:  # the state is the process's
        yield "evaluated", _values(hlo.evaluate(module, *make_inputs(case)))


def _of_recorded(one: Recorded) -> Parts:
    module = hlo.parse(one.text)
    yield from _of_module(module)
    yield "evaluated", _values(hlo.evaluate(module, *one.inputs))


def _of_text(text: str) -> Parts:
    return _of_module(hlo.parse(text))


def _of_module(module: hlo.HloModule) -> Parts:
    yield "printed", module.to_text()
    for target in TARGETS:
        yield from _of_compiled(target, _inside("get_compiler")("numba").compile(module, target=target))


def _of_program(function: Callable[..., Any], arguments: tuple[Any, ...], wide: bool = False) -> Parts:
    with hloom.enable_x64(wide):
        jitted = function if hasattr(function, "lower") else hloom.jit(function)
        lowered = jitted.lower(*hloom.tree.map(_argument, arguments))
        yield "traced", lowered.module.to_text()
        yield "types", f"{lowered.in_tree}\n{lowered.out_info}"
        yield "cost", str(dict(lowered.cost_analysis()))
        for target in TARGETS:
            yield from _of_compiled(target, lowered.compile(target=target))


def _argument(leaf: Any) -> Any:
    if not isinstance(leaf, str):
        return leaf
    shape = hlo.Shape.parse(leaf)
    return hloom.ShapeDtypeStruct(shape.dimensions, shape.element.dtype)


def _of_compiled(target: str, compiled: Any) -> Parts:
    """The parts of a Compiled or an Executable."""
    steps = (f"{p.name}: {p.instructions_before} -> {p.instructions_after}" for p in compiled.passes() if p.changed)
    yield f"passes for {target}", "\n".join(steps)
    yield f"optimised for {target}", getattr(compiled, "executable", compiled).module.to_text()
    yield f"memory for {target}", compiled.memory_analysis().text
    yield f"kernels for {target}", "\n".join(compiled.kernels().values())
    yield f"rows for {target}", _made["rows"]


def _values(arrays: Iterable[np.ndarray[Any, Any]]) -> str:
    """All bytes of the arrays, as hashes, and the first elements for people."""
    return "\n".join(
        f"{a.dtype}{list(a.shape)} {hashlib.sha256(a.tobytes()).hexdigest()[:16]} {a.reshape(-1)[:6].tolist()}"
        for a in map(np.asarray, arrays)
    )


# ---- internals of the library, except its compiler

_made = {"rows": ""}
"""The rows of the last program."""
_runtime: dict[str, str] = {}
"""The source of each function of the runtime itself that a program has used."""


@cache
def _inside(name: str) -> Any:
    """The object that the library calls `name`, in any module: modules move, these few names stay."""
    for module in [m for key, m in sys.modules.items() if key.startswith("hloom.")]:
        found = vars(module).get(name)
        if getattr(found, "__module__", None) == module.__name__:
            return found
    raise SystemExit(f"no loaded module of hloom has {name}: name it in {__file__} as it is called now")


def _prepare() -> None:
    """Programs get 0 for the addresses of their kernels, which are emitted but not compiled; so no program can run.
    None is kept in the store, and none is taken from it: its passes and its rows would not be made."""
    hloom.jit(lambda x: x + 1).lower(1.0).compile()  # loads the backend
    store, builder = _inside("KernelStore"), _inside("ProgramBuilder")
    codes, build = store.codes, builder.build

    def get_runtime(self: Any, kernels: Any) -> list[Any]:
        kernels = list(kernels)
        own = [k for k in kernels if k.convention == "native"]
        _runtime.update((k.name, f"{k.signature}\n{k.source}") for k in own)
        loaded = iter(codes(self, own))
        nothing = SimpleNamespace(address=0, object_bytes=0)
        return [next(loaded) if k.convention == "native" else nothing for k in kernels]

    def build_and_note(self: Any, *args: Any, **kwargs: Any) -> Any:
        program = build(self, *args, **kwargs)
        _made["rows"] = f"{program.to_text()}\n"
        return program

    store.codes, builder.build = get_runtime, build_and_note
    store.data, store.keep = (lambda self, key, end: None), (lambda self, key, end, block: None)


_NOT_COMPARED = re.compile(
    r' ?(source_file="[^"]*"|(source_(end_)?line|source_(end_)?column|stack_frame_id)=\d+)|'  # of metadata
    r"(?<=constant)@0x[0-9a-f]+| at 0x[0-9a-f]+|(?<=<function )\S+|\S+\.py:\d+( \(in [^)]*\))?"  # of rows, of errors
)
"""Places in source files, addresses, and names of Python functions that rows call. They are not compared."""


def look_at(name: str) -> Fingerprint:
    """The parts of a case, and those functions of the runtime that it is the first to use."""
    known, parts = set(_runtime), {}
    try:
        with np.errstate(all="ignore"):
            for part, text in _cases()[name]():
                parts[part] = _NOT_COMPARED.sub("", text)
    except Exception as error:
        parts["error"] = _NOT_COMPARED.sub("", f"{type(error).__name__}: {error}")
    return {name: parts, **{f"runtime {n}": {"source": _runtime[n]} for n in _runtime if n not in known}}


def fingerprint(pattern: str) -> Fingerprint:
    """The fingerprint of the cases with names that match `pattern`."""
    found: Fingerprint = {}
    names = [name for name in _cases() if re.search(pattern, name)]
    with ProcessPoolExecutor(WORKERS, initializer=_prepare) as workers:
        for one in workers.map(look_at, names, chunksize=16):
            found.update(one)
    return found


def differences(old: Fingerprint, new: Fingerprint) -> dict[str, list[str]]:
    """The parts that differ, for each case that has changed; a case that only `new` has is not reported."""
    found = {}
    for name, parts in old.items():
        others = new.get(name, {})
        changed = [part for part in {**parts, **others} if parts.get(part) != others.get(part)]
        if changed:
            found[name] = changed
    return found


def report(old: Fingerprint, new: Fingerprint, diffs: int) -> Iterator[str]:
    """Lines for people: what differs and where, for the first few."""
    found = differences(old, new)
    parts: dict[str, int] = {}
    for changed in found.values():
        for part in changed:
            parts[part] = parts.get(part, 0) + 1
    yield from (f"{count:6d} cases differ: {part}" for part, count in parts.items())
    for name in islice(found, SHOWN_CASES):
        yield f"{name}: {', '.join(found[name]) if name in new else 'is not there'}"
    if len(found) > SHOWN_CASES:
        yield f"... and {len(found) - SHOWN_CASES} more"
    for name in islice((name for name in found if name in new), diffs):
        yield from ("", *islice(_diff(old[name], new[name], name, found[name][0]), SHOWN_LINES))


def _diff(old: Mapping[str, str], new: Mapping[str, str], name: str, part: str) -> Iterator[str]:
    before, after = old.get(part, "").splitlines(), new.get(part, "").splitlines()
    return difflib.unified_diff(before, after, f"{name}: {part}", "now", lineterm="", n=2)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("command", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--match", default="", metavar="REGEX", help="only cases whose names have this: '^op dot'")
    parser.add_argument("--diffs", type=int, default=3, help="of how many cases the difference is shown (%(default)s)")
    options = parser.parse_args()
    if ROOT not in Path(hlo.__file__).resolve().parents:
        raise SystemExit(f"hloom is of {ROOT}, but hloom.hlo is {hlo.__file__}: the interpreter mixes two checkouts")
    began = time.perf_counter()
    new = fingerprint(options.match)
    print(f"{len(new)} cases of {ROOT} in {time.perf_counter() - began:.0f} s")
    if options.command == "write":
        with gzip.GzipFile(options.file, "wb", compresslevel=6, mtime=0) as file:
            file.write(json.dumps(new).encode())
        return 0
    old = json.loads(gzip.decompress(options.file.read_bytes()))
    old = {name: parts for name, parts in old.items() if re.search(options.match, name)}
    new = {name: parts for name, parts in new.items() if re.search(options.match, name)}
    print(*report(old, new, options.diffs), sep="\n")
    found = differences(old, new)
    print(f"{len(found)} of {len(old)} cases differ; {len(new.keys() - old.keys())} are new")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
