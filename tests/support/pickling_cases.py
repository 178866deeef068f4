"""Objects that users have, for the tests of pickling: how each is made, and what shows that a copy is as good.

The functions are at the top level of this module, so that another process finds them by name.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import hloom
import hloom.numpy as jnp
from hloom import hlo

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def plain(x: Any, n: int = 2) -> Any:
    return x * n + 1


wrapped = hloom.jit(plain, static_argnums=1, donate_argnums=0)


@hloom.jit
def decorated(x: Any) -> Any:
    return hloom.lax.scan(lambda c, y: (c + y, c * y), x[0], x)


class Model:
    @hloom.jit
    def method(self_or_x: Any) -> Any:  # used as a function
        return self_or_x + 3


@hloom.custom_jvp
def with_jvp(x: Any) -> Any:
    return x * x


with_jvp.defjvps(lambda t, y, x: 10 * t)


@hloom.custom_vjp
def with_vjp(x: Any) -> Any:
    return x * x


with_vjp.defvjp(lambda x: (x * x, x), lambda x, t: (t * 100,))


class Pair(NamedTuple):
    a: Any
    b: Any


class Callee:
    """A callable object."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self, x: Any) -> Any:
        return x - self.n


def deep(n: int = 3000) -> Any:
    """A program that is deeper than Python's stack."""

    def f(x: Any) -> Any:
        for _ in range(n):
            x = x + 1
        return x

    return hloom.make_hlo(f)(1.0)


def holding(w: Any) -> Any:
    """A function with an array of its own."""
    return lambda x: x @ w.T


def array(x: Any) -> Any:
    """All that a user sees of an array."""
    data = hloom.random.key_data(x) if str(x.dtype).startswith("key") else x
    bits = np.asarray(data)
    return str(x.dtype), x.shape, x.weak_type, bits.tobytes().hex(), np.asarray(data).flags.writeable, repr(x)


def result(f: Callable[[Any], Any]) -> Any:
    """The result of a function."""
    return [np.asarray(leaf).tolist() for leaf in hloom.tree.leaves(f(jnp.asarray(X)))]


def both(f: Any) -> Any:
    """A function's values and derivative."""
    return result(f), float(hloom.grad(f)(3.0))


def ran(lowered: Any) -> Any:
    """A lowered program: its text, and its results."""
    return lowered.as_text(), result(lowered.compile()), repr(lowered.out_info), repr(lowered.in_tree)


class Row(NamedTuple):
    make: Callable[[], Any]
    show: Callable[[Any], Any]
    is_same: bool = False
    """Copies are the object itself, because it cannot change."""


CASES: dict[str, Row] = {
    "float32": Row(lambda: jnp.asarray(X), array),
    "computed": Row(lambda: hloom.jit(plain)(jnp.asarray(X)), array),
    "transposed": Row(lambda: jnp.asarray(X).T, array),
    "weakly typed": Row(lambda: jnp.asarray(2) * 2, array),
    "bool": Row(lambda: jnp.asarray(X) > 2, array),
    "complex64": Row(lambda: jnp.asarray(X) * 1j, array),
    "bfloat16": Row(lambda: jnp.asarray(X).astype("bfloat16"), array),
    "float8": Row(lambda: jnp.asarray(X).astype("float8_e5m2"), array),
    "int4": Row(lambda: jnp.asarray(X).astype("int4"), array),
    "empty": Row(lambda: jnp.zeros((0, 3)), array),
    "a key": Row(lambda: hloom.random.key(7), array),
    "keys": Row(lambda: hloom.random.split(hloom.random.key(7), (2, 2)), array),
    "a tree of arrays": Row(
        lambda: {"w": [jnp.asarray(X)], "p": Pair(jnp.ones(2), None)},
        lambda t: (str(hloom.tree.structure(t)), [array(x) for x in hloom.tree.leaves(t)]),
    ),
    "a structure": Row(lambda: hloom.tree.structure({"w": [1, (2, None)], "p": Pair(1, 2)}), str),
    "a dtype of keys": Row(lambda: hloom.random.key(1).dtype, repr),
    "ShapeDtypeStruct": Row(lambda: hloom.ShapeDtypeStruct((2, 3), "bfloat16", weak_type=True), repr),
    "a jitted function": Row(lambda: hloom.jit(plain), result, True),
    "with options": Row(
        lambda: wrapped,
        lambda f: (f.lower(jnp.asarray(X), 5).as_text(), np.asarray(f(jnp.asarray(X) + 0, 5)).tolist()),
        True,
    ),
    "decorated": Row(lambda: decorated, result, True),
    "a decorated method": Row(lambda: Model.method, result, True),
    "jit of an object": Row(lambda: hloom.jit(Callee(4)), result, True),
    "a library function": Row(lambda: hloom.nn.softmax, result, True),
    "a function of NumPy's": Row(lambda: jnp.tanh, result, True),
    "a random function": Row(lambda: hloom.random.normal, lambda f: array(f(hloom.random.key(3), (4,))), True),
    "custom_jvp": Row(lambda: with_jvp, both, False),
    "custom_vjp": Row(lambda: with_vjp, both, False),
    "vjp's function": Row(lambda: hloom.vjp(plain, jnp.asarray(X))[1], result),
    "linearize's function": Row(lambda: hloom.linearize(plain, jnp.asarray(X))[1], result),
    "lowered": Row(lambda: hloom.jit(plain).lower(jnp.asarray(X)), ran),
    "lowered, of a lambda": Row(lambda: hloom.jit(lambda x: {"y": x + 1}, donate_argnums=0).lower(jnp.asarray(X)), ran),
    "lowered, with what it holds": Row(lambda: hloom.jit(holding(jnp.asarray(X))).lower(jnp.asarray(X)), ran),
    "lowered, with a static function": Row(
        lambda: hloom.jit(lambda x, f: f(x), static_argnums=1).lower(jnp.asarray(X), lambda x: x * 3), ran
    ),
    "lowered, loaded twice": Row(
        lambda: pickle.loads(pickle.dumps(hloom.jit(lambda x: x + 1).lower(jnp.asarray(X)))), ran
    ),
    "lowered, nested": Row(lambda: hloom.jit(decorated).lower(jnp.asarray(X)), ran),
    "a module": Row(lambda: hloom.make_hlo(decorated)(X), str, True),
    "a deep module": Row(deep, lambda m: (len(list(m.instructions())), str(m)), True),
    "a deep computation": Row(
        lambda: deep().entry, lambda c: (len(c.instructions), str(hlo.HloModule("m", c))), True
    ),
    "a shape": Row(lambda: hlo.Shape.parse("(f32[2,3]{0,1:T(8,128)}, bf16[])"), lambda s: s.to_text()),
    "a layout": Row(lambda: hlo.Shape.parse("f32[2,3]{0,1:T(8,128)}").array_layout, repr),
    "a literal": Row(lambda: hlo.Literal([1.5, np.nan]), lambda v: (repr(v), hash(v) == hash(hlo.Literal(v.array)))),
    "an opcode": Row(lambda: hlo.Opcode.ADD, repr),
    "a target": Row(lambda: hlo.target_named("tpu"), repr),
    "memory_analysis": Row(
        lambda: hloom.jit(plain).lower(jnp.asarray(X)).compile().memory_analysis(),
        lambda m: (str(m), m.temp_size_in_bytes),
    ),
    "the configuration": Row(lambda: hloom.config, lambda c: c is hloom.config, True),
    "a context manager": Row(lambda: hloom.enable_x64(), lambda m: _within(m)),
    "a client": Row(lambda: hloom.LocalClient(), lambda c: (c.backend, c.target)),
    "data of a client": Row(lambda: hloom.LocalClient().transfer_to_server(X), lambda d: np.asarray(d).tolist()),
    ".at": Row(lambda: jnp.asarray(X).at, lambda at: np.asarray(at[0, 1].set(9)).tolist()),
}


def _within(manager: Any) -> Any:
    with manager:
        inside = hloom.config.jax_enable_x64
    return inside, hloom.config.jax_enable_x64


def main() -> None:
    """Load the pickles from the input, and print what the copies show: for a test in another process."""
    loaded = pickle.load(sys.stdin.buffer)
    shown = {}
    for name, data in loaded.items():
        try:
            shown[name] = CASES[name].show(pickle.loads(data))
        except Exception as error:
            shown[name] = f"{type(error).__name__}: {error}"
    sys.stdout.buffer.write(pickle.dumps(shown))
