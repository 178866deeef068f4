#!/usr/bin/env python3
"""Record the HLO that JAX prints for a set of functions, so that tests can read it without JAX.

    python tests/data/hlo/record.py          # needs jax 0.10

Each function below gives `<name>.hlo`, as JAX lowers it, and `<name>.optimized.hlo`, the same after XLA's own CPU
passes (fusions, layouts, schedule, source tables), as far as the opcodes that XLA chose are among ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hloom.hlo import HloParseError, parse
from jax import lax
from jaxlib import _hlo

HERE = Path(__file__).resolve().parent
F32 = np.float32
PRINT = _hlo.HloPrintOptions()
PRINT.print_large_constants = True
LARGEST = 40_000
"""Characters of a file: the tests' data should stay small."""
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {}


def record(*arguments: Any, **jit_options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: record the function, lowered for `arguments`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS[function.__name__] = (function, arguments, jit_options)
        return function

    return register


def ones(*shape: int, dtype: Any = F32) -> np.ndarray[Any, Any]:
    return np.ones(shape, dtype)


@record(ones(3, 4))
def sine_sum(x: Any) -> Any:
    return jnp.sin(x).sum()


@record(ones(5, 7))
def softmax(x: Any) -> Any:
    return jax.nn.softmax(x, axis=-1)


@record(ones(5, 7))
def log_sum_exp(x: Any) -> Any:
    return jax.nn.logsumexp(x, axis=0)


@record(ones(4, 8), ones(8), ones(8))
def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias


@record(ones(16))
def activations(x: Any) -> Any:
    return (
        jax.nn.gelu(x),
        jax.nn.gelu(x, approximate=False),
        jax.nn.silu(x),
        jax.nn.softplus(x),
        jnp.tanh(x),
        jax.nn.relu(x),
    )


@record([(ones(6, 5), ones(5)), (ones(5, 3), ones(3))], ones(4, 6), np.arange(4, dtype=np.int32) % 3)
def mlp_loss_and_gradient(parameters: Any, x: Any, labels: Any) -> Any:
    def loss(parameters: Any) -> Any:
        h = x
        for w, b in parameters[:-1]:
            h = jnp.tanh(h @ w + b)
        w, b = parameters[-1]
        return -(jax.nn.log_softmax(h @ w + b) * jax.nn.one_hot(labels, 3)).sum(-1).mean()

    return jax.value_and_grad(loss)(parameters)


@record(ones(4, 5), ones(4, 5), donate_argnums=(0,))
def donated_update(x: Any, g: Any) -> Any:
    return x - 0.1 * g, (g * g).sum()


@record(ones(2, 3, 4), ones(2, 4, 5))
def batched_matmul(x: Any, y: Any) -> Any:
    return (
        x @ y,
        jnp.einsum("bij,bkj->bik", x, x),
        lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))), precision="highest"),
    )


@record(ones(4, 4, dtype=jnp.bfloat16), ones(4, 4, dtype=jnp.bfloat16))
def bfloat16_matmul(x: Any, y: Any) -> Any:
    return jnp.matmul(x, y, preferred_element_type=jnp.float32), (x + y).astype(jnp.float16)


@record(ones(4), ones(6, 3), ones(4, 4), ones(3, 4))
def scan_rnn(state: Any, inputs: Any, recurrent: Any, into: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = jnp.tanh(h @ recurrent + x @ into)
        return h, h.sum()

    return lax.scan(step, state, inputs)


@record(F32(2.0))
def newton_while(x: Any) -> Any:
    return lax.while_loop(lambda s: jnp.abs(s * s - x) > 1e-4, lambda s: 0.5 * (s + x / s), x)


@record(ones(8))
def fori(x: Any) -> Any:
    return lax.fori_loop(0, 10, lambda i, s: lax.dynamic_update_index_in_dim(s, s.sum() + i, i % 8, 0), x)


@record(ones(3), True)
def cond(x: Any, flag: Any) -> Any:
    return lax.cond(flag, lambda a: a * 2, lambda a: a - 1, x)


@record(ones(3), np.int32(1))
def switch(x: Any, index: Any) -> Any:
    return lax.switch(index, [lambda a: a, lambda a: a + 1, lambda a: -a], x)


@record(ones(5), ones(5))
def select_and_clip(x: Any, y: Any) -> Any:
    return jnp.where(x > y, x, jnp.nan), jnp.clip(x, -1, 1), jnp.isfinite(x), jnp.sign(y), jnp.nan_to_num(x)


@record(ones(3, 4), ones(2, 4))
def concatenate_and_pad(x: Any, y: Any) -> Any:
    return (
        jnp.concatenate([x, y]),
        jnp.stack([x, x], 1),
        jnp.pad(x, ((0, 1), (2, 3))),
        lax.pad(y, F32(7), [(-1, 2, 3), (0, 0, 1)]),
    )


@record(ones(6, 8), np.int32(2))
def slices(x: Any, i: Any) -> Any:
    fixed = x[1:5, ::2], x[::-1], jnp.flip(x, 1)
    return *fixed, lax.dynamic_slice(x, (i, i), (2, 3)), lax.dynamic_update_slice(x, x[:2, :2], (i, 0))


@record(ones(2, 3, 4))
def movement(x: Any) -> Any:
    return (
        x.transpose(2, 0, 1),
        x.reshape(6, 4),
        jnp.broadcast_to(x[0], (5, 3, 4)),
        jnp.arange(7.0),
        jnp.eye(3),
        lax.iota(jnp.uint8, 4),
    )


@record(ones(4, 6))
def reductions(x: Any) -> Any:
    return x.max(0), x.min(1), x.prod(), x.argmax(1), x.argmin(0), (x > 0).any(), (x > 0).all(0), x.std(), x.sum((0, 1))


@record(np.arange(4, dtype=np.int32), np.arange(4, dtype=np.uint32))
def integer_operations(x: Any, y: Any) -> Any:
    signed = x // 3, x % 3, x << 2, x >> 1, -x, abs(x), lax.population_count(x), lax.clz(x)
    return *signed, y ^ 7, y | 1, ~y, y >> 3, x.astype(jnp.int8), jnp.int32(-(2**31)), lax.bitcast_convert_type(y, F32)


@record(ones(3, dtype=np.complex64))
def complex_operations(z: Any) -> Any:
    return z * (1 + 2j), jnp.exp(z), z.real, z.imag, z.conj(), jnp.abs(z), lax.complex(z.real, z.imag), z == z


@record(ones(4))
def elementary_functions(x: Any) -> Any:
    more = jnp.cbrt(x), jnp.expm1(x), jnp.log1p(x), jnp.arctan2(x, x), lax.erf(x), x**2.5, x**3, jnp.sqrt(x), jnp.tan(x)
    return (
        *more,
        jnp.floor(x),
        jnp.ceil(x),
        jnp.round(x),
        jnp.fmod(x, 3),
        jnp.sinh(x),
        jnp.logaddexp(x, x),
        jax.nn.sigmoid(x),
    )


@record()
def constants() -> Any:
    table = np.arange(24).reshape(2, 3, 2, 2).astype(F32)
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4028235e38, 0.1], F32)
    exotic = np.array([1 + 2j, 3 - 0.5j], np.complex64), np.array([0.1, 3e38], jnp.bfloat16)
    plain = (
        np.array([True, False]),
        np.array([-128, 127], np.int8),
        np.array([2**32 - 1], np.uint32),
        np.zeros((2, 0), F32),
    )
    return tuple(jnp.asarray(a) for a in (table, special, *exotic, *plain))


@record(jax.random.key(0))
def random_normal(key: Any) -> Any:
    return jax.random.normal(key, (3, 2))


@record(jax.random.PRNGKey(0))
def random_split_uniform(key: Any) -> Any:
    first, second = jax.random.split(key)
    return (
        jax.random.uniform(first, (4,)),
        jax.random.bernoulli(second, 0.3, (4,)),
        jax.random.randint(first, (3,), 0, 9),
    )


@record(np.arange(4, dtype=np.uint32))
def random_bit_generator(key: Any) -> Any:
    return lax.rng_bit_generator(key, (5,), algorithm=lax.RandomAlgorithm.RNG_PHILOX)


@record(ones(3))
def nested_jit(x: Any) -> Any:
    @jax.jit
    def inner(y: Any) -> Any:
        return jnp.sin(y) * 2

    return inner(x) + inner(x + 1)


@record(ones(3))
def composite(x: Any) -> Any:
    def double(x: Any, **attributes: Any) -> Any:
        return x * 2

    call = lax.composite(double, name="my.double", version=3)
    return call(
        x, count=3, label='a "quoted} {label', scale=1.5, flag=True, table=np.array([1, 2])
    ), lax.optimization_barrier(x)


@record(ones(4), ones(3))
def ode_step_vmapped(states: Any, parameters: Any) -> Any:
    def step(y: Any, p: Any) -> Any:
        k1 = p * y
        k2 = p * (y + 0.05 * k1)
        return y + 0.1 * k2

    return jax.vmap(jax.vmap(step, (None, 0)), (0, None))(states, parameters)


@record({"b": ones(2), "a": (ones(), None, [ones(3)])})
def tree(arguments: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf + 1, arguments)


@record(ones(0, 3))
def zero_size(x: Any) -> Any:
    return x.sum(0), jnp.concatenate([x, x]), x @ ones(3, 2)


@record(ones(3, dtype=np.float64), np.arange(3))
def double_precision(x: Any, i: Any) -> Any:
    return x * 0.1 + i, jnp.exp(x).sum(), i + 2**40


def main() -> None:
    for old in HERE.glob("*.hlo"):
        old.unlink()
    for name, (function, arguments, options) in FUNCTIONS.items():
        with jax.enable_x64(name in ("double_precision", "constants")):
            lowered = jax.jit(function, **options).lower(*arguments)
            write(name, lowered.as_text("hlo"))
            (module,) = lowered.compile().runtime_executable().hlo_modules()
            optimized = module.to_string(PRINT)
            try:
                parse(optimized)
            except HloParseError as error:
                print(f"{name} is recorded before optimisation only: {error.message}")
            else:
                write(f"{name}.optimized", optimized)


def write(name: str, text: str) -> None:
    """Write a file, with the paths of this machine shortened, unless it is large."""
    text = text.replace(str(HERE), "/models").replace(sys.prefix, "/python")
    if len(text) > LARGEST:
        print(f"{name} is not recorded: it has {len(text):,} characters")
    else:
        (HERE / f"{name}.hlo").write_text(text.strip() + "\n")


if __name__ == "__main__":
    main()
