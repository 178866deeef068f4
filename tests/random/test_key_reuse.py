"""`debug_key_reuse`: a key that is used twice is an error, outside of jit and inside, through all transformations."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax, random
from hloom.errors import KeyReuseError
from hloom.extend.core import Primitive


@pytest.fixture(autouse=True)
def _watched() -> Iterator[None]:
    with hloom.debug_key_reuse(True):
        yield


def key() -> Any:
    return random.key(0)


def keys(*shape: int) -> Any:
    return random.split(key(), shape)


def _after(*uses: Callable[[Any], Any]) -> Callable[[], Any]:
    """The uses of one key, one after the other."""

    def run() -> Any:
        one = key()
        return [use(one) for use in uses]

    return run


@hloom.custom_jvp
def by_jvp(x: Any, k: Any) -> Any:
    return x * random.normal(k)


by_jvp.defjvp(lambda primals, tangents: (by_jvp(*primals), tangents[0]))


@hloom.custom_vjp
def by_vjp(x: Any, k: Any) -> Any:
    return x * random.normal(k)


by_vjp.defvjp(lambda x, k: (x * random.normal(k), x), lambda x, g: (g * x, None))
remat = hloom.checkpoint(lambda x, k: jnp.sin(x * random.normal(k)))
drawn = hloom.jit(lambda k: random.normal(k))


def _times(k: Any) -> Callable[[Any], Any]:
    return lambda x: jnp.sin(x * random.normal(k))


def _swap(state: Any, _: Any) -> Any:
    first, second = state
    return (second, first), random.bits(first)


def _chain(state: Any, _: Any) -> Any:
    k, x = state
    k, own = random.split(k)
    return (k, jnp.sin(x * random.normal(own))), x


def _twice_in_a_turn(state: Any) -> Any:
    k, x = state
    return random.split(k)[0], x + random.uniform(random.split(k)[1])


def _used_by_test(state: Any) -> Any:
    return state[1] < random.uniform(state[0])


def _at_set() -> Any:
    ks = keys(3)
    random.bits(ks[1])
    return random.bits(ks.at[2].set(random.key(5))[1])


def _at_index(i: Any, j: Any) -> Any:
    ks = keys(3)
    return random.bits(ks[i]) + random.bits(ks[j])


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "bits": (_after(random.bits, random.bits), "random_bits"),
    "normal": (_after(random.normal, random.normal), "jit"),
    "split": (_after(random.split, random.split), "random_split"),
    "split and draw": (_after(random.split, random.uniform), "jit"),
    "jit": (_after(drawn, drawn), "jit"),
    "in jit": (_after(hloom.jit(lambda k: random.bits(k) + random.bits(k))), "random_bits"),
    "reshape": (_after(random.bits, lambda k: random.bits(k.reshape(1)[0])), "slice|random_bits"),
    "broadcast": (_after(lambda k: random.bits(k[None][0]), random.bits), "random_bits"),
    "transpose": (lambda: [random.bits(x[1, 0]) for ks in [keys(2, 2)] for x in (ks, ks.T[::-1, ::-1])], "slice"),
    "copy": (_after(random.bits, lambda k: random.bits(jnp.array(k, copy=True))), "random_bits"),
    "slice": (lambda: [random.bits(ks[i]) for ks in [keys(3)] for i in (0, 1, 0)], "slice"),
    "slices that overlap": (lambda: [ks[a:b] for ks in [keys(4)] for a, b in ((0, 2), (1, 3))], "slice"),
    "stack": (_after(lambda k: jnp.stack([k, random.key(1)]), random.bits), "random_bits"),
    "where": (_after(lambda k: jnp.where(True, k, random.key(1)), random.bits), "random_bits"),
    "at set": (_at_set, "slice"),
    "returned": (_after(hloom.jit(lambda k: (random.normal(k), k)), random.bits), "random_bits"),
    "vmap": (lambda: [hloom.vmap(random.bits)(ks) for ks in [keys(3)] for _ in range(2)], "random_bits"),
    "vmap then one": (lambda: [f(ks) for ks in [keys(3)] for f in (hloom.vmap(random.bits), lambda x: x[0])], "slice"),
    "vmap of one key": (_after(lambda k: hloom.vmap(_times(k))(jnp.ones(2)), random.normal), "jit"),
    "cond": (_after(lambda k: lax.cond(jnp.array(True), random.normal, lambda k: 0.0, k), random.normal), "jit"),
    "switch": (_after(lambda k: lax.switch(1, [random.normal, random.uniform], k), random.bits), "random_bits"),
    "scan of a constant": (_after(lambda k: lax.map(lambda x: x * random.normal(k), jnp.ones(3))), "scan body"),
    "fori_loop": (_after(lambda k: lax.fori_loop(0, 3, lambda i, x: x + random.normal(k), 0.0)), "scan body"),
    "scan that swaps": (lambda: lax.scan(_swap, (key(), random.key(1)), None, length=4), "scan body"),
    "scan over keys": (lambda: [lax.map(random.bits, ks) for ks in [keys(3)] for _ in range(2)], "scan|random_bits"),
    "while body": (_after(lambda k: lax.while_loop(lambda s: s[1] < 0.5, _twice_in_a_turn, (k, 0.0))), "random_split"),
    "while test": (_after(lambda k: lax.while_loop(_used_by_test, lambda s: (s[0], s[1] + 1), (k, 0.0))), "loop cond"),
    "while": (_after(lambda k: lax.while_loop(lambda s: s < 0.5, lambda s: s + random.uniform(k), 0.0)), "loop body"),
    "grad": (_after(lambda k: hloom.grad(_times(k))(1.0), random.normal), "jit"),
    "jvp": (_after(lambda k: hloom.jvp(_times(k), (1.0,), (1.0,)), random.normal), "jit"),
    "value, then gradient": (_after(lambda k: _times(k)(1.0), lambda k: hloom.grad(_times(k))(1.0)), "jit|random_bits"),
    "custom_jvp": (_after(lambda k: by_jvp(1.0, k), random.normal), "jit"),
    "custom_vjp": (_after(lambda k: by_vjp(1.0, k), random.normal), "jit"),
    "grad of custom_vjp": (_after(lambda k: hloom.grad(by_vjp)(1.0, k), random.normal), "jit"),
    "checkpoint": (_after(lambda k: remat(1.0, k), random.normal), "jit"),
    "grad of checkpoint": (_after(lambda k: hloom.grad(remat)(1.0, k), random.normal), "jit"),
    "gamma": (_after(lambda k: random.gamma(k, 1.0), random.bits), "random_bits"),
    "both arguments": (_after(lambda k: hloom.jit(lambda a, b: random.bits(a) + random.bits(b))(k, k)), "jit"),
}
GOOD: dict[str, Callable[[], Any]] = {
    "split": lambda: [random.normal(k) for k in keys(3)],
    "slices": lambda: [random.bits(k) for ks in [keys(2, 2)] for row in (ks[0], ks[1]) for k in (row[0], row[1])],
    "fold_in": _after(*[lambda k, i=i: random.normal(random.fold_in(k, i)) for i in range(3)], random.normal),  # type: ignore[misc]
    "clone": _after(random.bits, lambda k: random.bits(random.clone(k)), random.clone),
    "key_data": _after(random.bits, random.key_data, lambda k: k == k, repr),
    "words": lambda: [random.bits(k) for k in [random.PRNGKey(0)] for _ in range(2)],
    "wrapped": lambda: [random.bits(random.wrap_key_data(w)) for w in [random.PRNGKey(0)] for _ in range(2)],
    "where": _after(lambda k: random.bits(jnp.where(True, k, random.key(1)))),
    "concatenate": lambda: random.bits(jnp.concatenate([keys(2), random.split(random.key(1))])[3]),
    "vmap": lambda: hloom.vmap(lambda k: [random.normal(x) for x in random.split(k)])(keys(3)),
    "vmap of nothing": lambda: hloom.vmap(lambda k: [random.bits(x) for x in random.split(k)])(keys(0)),
    "vmap along 1": lambda: hloom.vmap(hloom.vmap(random.normal), in_axes=1)(keys(3, 2)),
    "vmap of indices": lambda: hloom.vmap(lambda i, ks: random.normal(ks[i]), (0, None))(jnp.arange(3), keys(3)),
    "cond": _after(lambda k: lax.cond(jnp.array(True), lambda: random.normal(k), lambda: random.uniform(k))),
    "cond without": _after(lambda k: lax.cond(jnp.array(True), lambda k: 0.0, lambda k: 1.0, k), random.normal),
    "scan": lambda: lax.scan(_chain, (key(), 1.0), None, length=3),
    "scan over keys": lambda: lax.scan(lambda x, k: (x + random.normal(k), x), 0.0, keys(3)),
    "grad of a scan": lambda: hloom.grad(lambda x: lax.scan(_chain, (key(), x), None, length=3)[0][1])(1.0),
    "hessian of a scan": lambda: hloom.hessian(lambda x: lax.scan(_chain, (key(), x), None, length=3)[0][1])(1.0),
    "grad of checkpoints": lambda: hloom.grad(lambda x: lax.scan(lambda c, k: (remat(c, k), c), x, keys(3))[0])(1.0),
    "vmap of checkpoints": lambda: hloom.vmap(hloom.grad(remat))(jnp.ones(3), keys(3)),
    "second derivative of a checkpoint": lambda: hloom.hessian(remat)(1.0, key()),
    "gradient of a batch": lambda: hloom.grad(lambda x: hloom.vmap(lambda k: x * random.normal(k))(keys(3)).sum())(1.0),
    "linearize": lambda: [hloom.linearize(_times(key()), 1.0)[1](1.0) for _ in range(2)],
    "one vjp": lambda: [back(1.0) for back in [hloom.vjp(lambda x: remat(x, key()), 1.0)[1]] for _ in range(2)],
    "while": lambda: lax.while_loop(lambda s: s[1] < 2, lambda s: _chain(s, None)[0][:1] + (s[1] + 1.0,), (key(), 0.0)),
    "unused argument": _after(random.bits, lambda k: hloom.jit(lambda k, x: x)(k, 1.0)),
    "same jit": lambda: [drawn(k) for k in keys(3)],
}  # fmt: skip
DRAWS: dict[str, Callable[[Any], Any]] = {
    "ball": lambda k: random.ball(k, 3),
    "bernoulli": lambda k: random.bernoulli(k, 0.5, mode="high"),
    "beta": lambda k: random.beta(k, 1.0, 2.0),
    "binomial": lambda k: random.binomial(k, 3, 0.5),
    "categorical": lambda k: random.categorical(k, jnp.zeros(3), replace=False, shape=(2,)),
    "choice": lambda k: random.choice(k, 5, (3,), replace=False),
    "dirichlet": lambda k: random.dirichlet(k, jnp.ones(3)),
    "f": lambda k: random.f(k, 2.0, 3.0),
    "gamma": lambda k: random.gamma(k, 0.5),
    "generalized_normal": lambda k: random.generalized_normal(k, 1.0),
    "gumbel": lambda k: random.gumbel(k, mode="high"),
    "multinomial": lambda k: random.multinomial(k, 4, jnp.ones(2) / 2),
    "multivariate_normal": lambda k: random.multivariate_normal(k, jnp.zeros(2), jnp.eye(2)),
    "orthogonal": lambda k: random.orthogonal(k, 3),
    "permutation": lambda k: random.permutation(k, jnp.ones((4, 4)), independent=True),
    "poisson": lambda k: random.poisson(k, 3.0),
    "randint": lambda k: random.randint(k, (2,), 0, 9, "int8"),
    "t": lambda k: random.t(k, 3.0),
    "truncated_normal": lambda k: random.truncated_normal(k, -1.0, 1.0),
    "wald": lambda k: random.wald(k, 1.0),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("is_jitted", [False, True], ids=["outside of jit", "jit"])
@pytest.mark.parametrize("name", BAD)
def test_reuse(name: str, is_jitted: bool) -> None:
    run, where = BAD[name]
    with pytest.raises(KeyReuseError, match=f"(?s)({where}).*test_key_reuse.py:.*first used at .*test_key_reuse.py:"):
        (hloom.jit(run).trace if is_jitted else run)()
    with hloom.debug_key_reuse(False):
        hloom.jit(run).trace()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", GOOD)
def test_no_reuse(name: str) -> None:
    run = GOOD[name]
    found = hloom.tree.leaves(run())
    if name != "key_data":  # which looks at elements
        hloom.jit(run).trace()
    with hloom.debug_key_reuse(False):
        expected = hloom.tree.leaves(run())
    for x, y in zip(found, expected, strict=True):
        if not isinstance(x, str):
            assert bool(jnp.all(x == y)) or np.allclose(x, y, rtol=1e-5), name


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", DRAWS)
def test_each_draw_is_one_use(name: str) -> None:
    draw, one = DRAWS[name], key()
    draw(one)
    with pytest.raises(KeyReuseError, match="Previously-consumed key"):
        draw(one)
    hloom.jit(hloom.vmap(draw)).trace(keys(2))
    with pytest.raises(KeyReuseError, match="is already consumed"):
        hloom.jit(lambda k: [draw(k), draw(k)]).trace(key())


def test_op_by_op() -> None:
    with hloom.disable_jit():
        one = key()
        random.uniform(one)
        with pytest.raises(KeyReuseError, match="Previously-consumed key passed to random_bits at index 0"):
            random.uniform(one)


def test_computed_indices() -> None:
    """Outside of jit, which key is taken is known; inside, it counts as any."""
    first, second = jnp.array(0), jnp.array(1)
    _at_index(first, second)
    with pytest.raises(KeyReuseError, match=r"slice|random_bits"):
        _at_index(first, first)
    with pytest.raises(KeyReuseError, match="random_bits"):
        hloom.jit(_at_index)(first, second)
    taken = keys(3)[jnp.array([2, 0])]
    random.bits(taken[0])
    random.bits(taken[1])


def test_a_closed_over_key() -> None:
    one = key()
    run = hloom.jit(lambda: random.uniform(one))
    run()
    with pytest.raises(KeyReuseError, match="Previously-consumed key passed to jit-compiled function at index 0"):
        run()


def test_a_key_is_not_used_by_what_fails() -> None:
    def fails(x: Any) -> Any:
        raise RuntimeError("no")

    one = key()
    with pytest.raises(Exception, match="no"):
        hloom.jit(lambda k: hloom.pure_callback(fails, jnp.float32(0), random.normal(k)))(one)
    random.normal(one)


def test_a_primitive_of_users_is_seen_through() -> None:
    doubled = Primitive("doubled_draw", lambda k: 2 * random.normal(k))
    one = key()
    doubled.bind(one)
    with pytest.raises(KeyReuseError, match="Previously-consumed key"):
        random.normal(one)


def test_programs_are_the_same() -> None:
    def f(k: Any) -> Any:
        return [random.normal(x) for x in random.split(k)]

    with hloom.debug_key_reuse(False):
        plain = hloom.jit(f).lower(key()).as_text()
    assert "random_" not in plain and "random_split" in hloom.jit(f).lower(key()).as_text()


def test_a_function_that_was_called_before() -> None:
    f = hloom.jit(lambda k: random.bits(k) + random.bits(k))
    with hloom.debug_key_reuse(False):
        f(key())
    with pytest.raises(KeyReuseError, match="In random_bits"):
        f(key())


def test_the_environment() -> None:
    script = "import hloom; k = hloom.random.key(0); hloom.random.normal(k); hloom.random.normal(k)"
    env = {**os.environ, "JAX_DEBUG_KEY_REUSE": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert "KeyReuseError" in done.stderr
    done = subprocess.run([sys.executable, "-c", script], env={**env, "JAX_DEBUG_KEY_REUSE": "0"}, capture_output=True)
    assert done.returncode == 0


def test_results_are_looked_at_all_the_same() -> None:
    """In a process of its own: each setting changes what runs operations when it is first on."""
    code = """
import hloom, hloom.numpy as jnp
for setting in (hloom.debug_nans, hloom.debug_key_reuse, hloom.debug_nans):
    with setting(True):
        try:
            jnp.log(jnp.array(-1.0))
        except FloatingPointError:
            print("seen")
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["seen", "seen"]
