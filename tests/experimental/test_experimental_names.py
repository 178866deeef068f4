"""Names of jax.experimental that are small: a stateful generator, LSTM, attributes of instructions, convolutions,
operations with rules of their own, and the accuracy of elementary functions."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.experimental import hijax, jet, pjit, random, rnn, scheduling_groups, sparse, xla_metadata


def test_a_generator_draws_what_jaxs_draws() -> None:
    """The numbers of JAX 0.10.2."""
    rng = random.stateful_rng(42)
    np.testing.assert_allclose([rng.uniform(), rng.uniform()], [0.5302608, 0.72766423], rtol=1e-6)
    draw = hloom.jit(rng.uniform)
    np.testing.assert_allclose([draw(), draw()], [0.6672406, 0.3890121], rtol=1e-6)
    found = hloom.vmap(lambda r, x: x + r.uniform())(random.stateful_rng(123).split(3), jnp.zeros(3))
    np.testing.assert_allclose(found, [0.35525954, 0.21937883, 0.5336956], rtol=1e-6)
    assert [r.integers(0, 10, 2).tolist() for r in random.stateful_rng(123).spawn(2)] == [[4, 5], [2, 1]]
    assert random.stateful_rng().random(3).shape == (3,) and rng.normal(5.0, 0.0, 2).tolist() == [5, 5]
    with pytest.raises(ValueError, match="split stateful generator"):
        random.stateful_rng(1).split(2).key()
    with pytest.raises(TypeError, match="requires a seed"):
        hloom.jit(lambda: random.stateful_rng().uniform())()


def test_pjit_is_jit() -> None:
    with pytest.warns(DeprecationWarning, match="experimental.pjit.pjit has been deprecated") as caught:
        double = pjit.pjit(lambda x, n: x * n, static_argnums=1)
        triple = pjit.pjit(static_argnames="n")(lambda x, n: x * n)
    assert [w.filename for w in caught] == [__file__] * 2
    assert double(3.0, 2) == 6 and triple(3.0, n=3) == 9 and "jit" in repr(type(double)).lower()


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _one_step(x: Any, h: Any, c: Any, weights: Any) -> Any:
    w_ih, w_hh, b_ih, b_hh = weights
    i, f, g, o = np.split(x @ w_ih.T + h @ w_hh.T + b_ih + b_hh, 4)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(c), c


@pytest.mark.parametrize("bidirectional", [False, True])
def test_lstm(bidirectional: bool) -> None:
    sizes = 3, 4, 2, bidirectional
    directions, lengths = 1 + bidirectional, [5, 3]
    rows = np.random.RandomState(0)
    weights = rnn.init_lstm_weight(hloom.random.key(0), *sizes)
    assert weights.shape == (rnn.get_num_params_in_lstm(*sizes),) and abs(weights).max() <= 0.5
    x = rows.randn(2, 5, 3).astype(np.float32)
    h, c = rows.randn(2, 2 * directions, 2, 4).astype(np.float32)
    given = jnp.array(x), jnp.array(h), jnp.array(c), weights, jnp.array(lengths, jnp.int32)
    y, h_n, c_n = rnn.lstm(*given, *sizes[:3], 0.0, bidirectional)
    parts = [{k: np.asarray(v) for k, v in p.items()} for p in rnn.unpack_lstm_weights(weights, *sizes)]
    for b, length in enumerate(lengths):
        inputs = x[b, :length]
        for layer in range(2):
            found = []
            for direction in range(directions):
                k = layer * directions + direction
                state, outputs = (h[k, b], c[k, b]), {}
                for t in range(length)[:: -1 if direction else 1]:
                    state = _one_step(inputs[t], *state, [p[k] for p in parts])
                    outputs[t] = state[0]
                np.testing.assert_allclose(h_n[k, b], state[0], atol=1e-5)
                np.testing.assert_allclose(c_n[k, b], state[1], atol=1e-5)
                found.append(np.stack([outputs[t] for t in range(length)]))
            inputs = np.concatenate(found, axis=-1)
        np.testing.assert_allclose(y[b, :length], inputs, atol=1e-5)
        assert not np.asarray(y[b, length:]).any()
    twice = rnn.swap_lstm_gates(rnn.swap_lstm_gates(weights, *sizes), *sizes)
    assert (twice == weights).all() and not (rnn.swap_lstm_gates(weights, *sizes) == weights).all()
    with pytest.raises(hloom.errors.UnsupportedError, match="dropout"):
        rnn.lstm(*given, *sizes[:3], 0.5, bidirectional)


def test_calls_with_attributes() -> None:
    @scheduling_groups.scheduling_group("all")
    @scheduling_groups.xla_metadata_call(inlineable="false")
    @hloom.jit
    def f(x: Any, power: int = 2) -> Any:
        return x**power

    text = hloom.jit(lambda x: f(x) + 1).lower(3.0).as_text()
    assert text.count('inlineable="false"') == text.count('scheduling_group="all"') == 1
    assert f(3.0) == 9 and hloom.grad(f)(3.0) == 6 and hloom.vmap(f)(jnp.arange(3.0)).tolist() == [0, 1, 4]
    assert hloom.jit(hloom.grad(hloom.checkpoint(f)))(3.0) == 6 and f.__name__ == "f"


def test_attributes_of_instructions() -> None:
    @hloom.jit
    def f(x: Any) -> Any:
        with xla_metadata.set_xla_metadata(group="a", gone=1), xla_metadata.set_xla_metadata(depth=2, gone=None):
            y = x * 2
        return xla_metadata.set_xla_metadata(y, tag=True) + 1

    text = f.lower(1.0).as_text()
    assert 'frontend_attributes={depth="2",group="a"}' in text and 'frontend_attributes={tag="true"}' in text
    assert "gone" not in text and f(3.0) == 7
    assert xla_metadata.set_xla_metadata(step="s")(lambda x: x + 1)(1) == 2
    tagged = hloom.grad(lambda x: xla_metadata.set_xla_metadata(x * x, tag=1))
    assert tagged(3.0) == 6 and hloom.vmap(tagged)(jnp.arange(3.0)).tolist() == [0, 2, 4]
    # a function that is traced with other attributes is another program
    g = hloom.jit(lambda x: -x)
    assert "first" not in g.lower(1.0).as_text()
    with xla_metadata.set_xla_metadata(first=1):
        assert "first" in g.lower(1.0).as_text()


class _Power(hijax.VJPHiPrimitive):
    def __init__(self, x: Any, *, power: int, factor: float = 1.0) -> None:
        self.in_avals, self.out_aval = (hloom.typeof(x),), hloom.typeof(x)
        self.params = {"power": power, "factor": factor}
        super().__init__()

    def expand(self, x: Any) -> Any:
        return x**self.power  # type: ignore[attr-defined]


class _ByAccumulators(_Power):
    def vjp_fwd(self, nzs_in: Any, /, x: Any) -> Any:
        assert nzs_in == (True,)
        return self(x), x

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        arg_accums[0].accum(self.factor * outgrad * self.power * res ** (self.power - 1))  # type: ignore[attr-defined]


class _ByValues(_Power):
    def vjp_fwd(self, nzs_in: Any, /, x: Any) -> Any:
        return self(x), x

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        return (self.factor * outgrad * self.power * res ** (self.power - 1),)  # type: ignore[attr-defined]


class _Forward(_Power):
    def jvp(self, primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return self(x), self.factor * t * self.power * x ** (self.power - 1)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [_Power, _ByAccumulators, _ByValues, _Forward])
def test_operations_with_rules_of_their_own(kind: Any) -> None:
    factor = 1.0 if kind is _Power else 10.0

    def f(x: Any) -> Any:
        return kind(x, power=3, factor=factor)(x)

    for run in (f, hloom.jit(f)):
        assert run(2.0) == 8 and hloom.grad(run)(2.0) == 12 * factor
    assert hloom.vmap(hloom.grad(f))(jnp.arange(3.0)).tolist() == [0, 3 * factor, 12 * factor]
    assert kind(1.0, power=2) == kind(2.0, power=2) != kind(2.0, power=3)


def test_operations_that_say_too_little() -> None:
    class Nothing(hijax.VJPHiPrimitive):
        pass

    with pytest.raises(AttributeError, match=r"should set `self.in_avals`"):
        Nothing()
    with pytest.raises(ValueError, match="takes arguments of the structure"):
        _Power(1.0, power=2)(1.0, 2.0)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("padding", ["VALID", "SAME", "pads"])
@pytest.mark.parametrize(("image", "kernel"), [((9,), (3,)), ((6, 7), (2, 3))])
def test_sparse_convolutions(image: tuple[int, ...], kernel: tuple[int, ...], padding: Any) -> None:
    rows = np.random.RandomState(1)
    x = jnp.array(np.where(rows.rand(1, 1, *image) < 0.4, rows.randn(1, 1, *image), 0), jnp.float32)
    w = jnp.array(rows.randn(1, 1, *kernel), jnp.float32)
    pads = [(1, 2)] * len(image) if padding == "pads" else padding
    strides = (1,) * len(image)
    wanted = lax.conv_general_dilated(x, w, strides, pads)
    sparse_x, sparse_w = sparse.BCOO.fromdense(x, n_batch=2), sparse.BCOO.fromdense(w)
    convolved = hloom.jit(lambda a, b: sparse.bcoo_conv_general_dilated(a, b, window_strides=strides, padding=pads))
    for a, b in ((sparse_x, w), (x, sparse_w), (sparse_x, sparse_w), (sparse.BCOO.fromdense(x), w)):
        found = convolved(a, b)
        np.testing.assert_allclose(found.todense(), wanted, atol=1e-5)
    with pytest.raises(hloom.errors.UnsupportedError, match="window_strides"):
        sparse.bcoo_conv_general_dilated(sparse_x, w, window_strides=(2,) * len(image), padding="VALID")


ACCURATE = ("cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt", "sin", "sqrt", "tan", "tanh")


@pytest.mark.parametrize("name", ACCURATE)
def test_accuracy(name: str) -> None:
    f, x = getattr(lax, name), jnp.array([0.5, 0.7])
    for accuracy in (lax.AccuracyMode.HIGHEST, lax.AccuracyMode.DEFAULT, lax.Tolerance(1e-3, 1e-3, 4), None):
        assert (f(x, accuracy=accuracy) == f(x)).all()
        assert (hloom.jit(partial(f, accuracy=accuracy))(x) == hloom.jit(f)(x)).all()
    with pytest.raises(hloom.errors.UnsupportedError, match="units in the last place"):
        f(x, accuracy=lax.Tolerance(ulps=1))
    with pytest.raises(TypeError, match="must be an AccuracyMode"):
        f(x, accuracy="highest")


def test_small_things() -> None:
    assert [round(float(jet.fact(n)), 3) for n in range(5)] == [math.factorial(n) for n in range(5)]
    for bad in ({"atol": -1}, {}):
        with pytest.raises(ValueError, match=r"non-negative|At least one"):
            lax.Tolerance(**bad)
    lowered = hloom.jit(lambda x: 2 * x).lower(1.0)
    assert lowered.compiler_ir("hlo").as_hlo_text().startswith("HloModule jit_lambda")
    assert hloom.sharding.ManualAxisType() == hloom.sharding.ManualAxisType(frozenset(), frozenset(), frozenset())
    hloom.config.update("jax_remat3", hloom.config.jax_remat3)
