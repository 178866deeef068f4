"""Primitives: user-defined ones with hloom.extend, and rules for every primitive: a call in HLO, effects in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo import Opcode
from hloom.hlo.ops.custom_call import CustomCallAttributes
from hloom.tracer.core import bind

import hloom.numpy as jnp
from hloom import checkpoint, grad, hessian, jit, jvp, lax, linearize, make_hlo, vjp
from hloom.extend import Linear, Primitive

X = np.array([0.5, -1.25, 2.0], np.float32)
Y = np.array([1.0, 3.0, -2.0], np.float32)


def scaled_add() -> Primitive:
    """x + scale * y**2, with nothing said but its meaning."""
    return Primitive("scaled_add", lambda x, y, *, scale: x + scale * y * y)


def cubed() -> Primitive:
    """x**3, with three times its derivative, so that one sees which rule was used."""
    p = Primitive("cubed", lambda x: x * x * x)

    @p.def_jvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return p.bind(x), 9 * x * x * t

    return p


def doubled(seen: list[Any]) -> Primitive:
    """2 x: linear, with a transpose that tells that it was used."""
    p = Primitive("doubled", lambda x: x + x)

    @p.def_linear
    def _(ct: Any, x: Any) -> Any:
        seen.append(x)
        return (ct + ct,)

    return p


# --- what it is


def test_it_is_one_composite_call_in_hlo() -> None:
    p = scaled_add()
    text = make_hlo(lambda x, y: p.bind(x, y, scale=2.0) + 1)(X, Y).to_text()
    (line,) = [line for line in text.splitlines() if " call(" in line]
    assert 'composite.name="scaled_add"' in line and "scale" in line


def test_passes_inline_it() -> None:
    p = scaled_add()
    compiled = jit(lambda x, y: p.bind(x, y, scale=2.0)).lower(X, Y).compile()
    assert " call(" not in compiled.as_text()


HOW = pytest.mark.parametrize(
    "how", [lambda f: f, jit, lambda f: jit(jit(f)), checkpoint], ids=["eager", "jit", "nested", "remat"]
)


@HOW
def test_values_and_derivatives_are_those_of_the_meaning(how: Callable[..., Any]) -> None:
    p = scaled_add()

    def by_primitive(x: Any, y: Any) -> Any:
        return jnp.sin(p.bind(x, y, scale=2.0)).sum()

    def by_hand(x: Any, y: Any) -> Any:
        return jnp.sin(x + 2.0 * y * y).sum()

    f = how(by_primitive)
    np.testing.assert_allclose(f(X, Y), by_hand(X, Y), rtol=1e-6)
    for argnums in (0, 1, (0, 1)):
        found, wanted = grad(f, argnums)(X, Y), grad(by_hand, argnums)(X, Y)
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-5)
    np.testing.assert_allclose(jvp(f, (X, Y), (Y, X))[1], jvp(by_hand, (X, Y), (Y, X))[1], rtol=1e-5)
    np.testing.assert_allclose(hessian(f)(X, Y), hessian(by_hand)(X, Y), rtol=1e-4)


@HOW
def test_its_own_jvp_rule_is_used(how: Callable[..., Any]) -> None:
    p = cubed()
    f = how(lambda x: p.bind(x).sum())
    np.testing.assert_allclose(f(X), (X**3).sum(), rtol=1e-6)
    np.testing.assert_allclose(grad(f)(X), 9 * X * X, rtol=1e-6)
    np.testing.assert_allclose(jvp(f, (X,), (Y,))[1], (9 * X * X * Y).sum(), rtol=1e-5)
    np.testing.assert_allclose(jit(grad(lambda x: grad(f)(x).sum()))(X), 18 * X, rtol=1e-6)


def test_its_own_jvp_rule_in_scan_cond_and_while() -> None:
    p = cubed()

    def scanned(x: Any) -> Any:
        return lax.scan(lambda c, _: (p.bind(c), None), x, None, length=2)[0]

    np.testing.assert_allclose(grad(scanned)(jnp.float32(1.1)), (9 * 1.1**6) * (9 * 1.1**2), rtol=1e-5)
    chosen = grad(lambda x: lax.cond(x > 0, p.bind, jnp.sin, x))
    np.testing.assert_allclose(chosen(2.0), 36.0)
    np.testing.assert_allclose(chosen(-2.0), np.cos(-2.0), rtol=1e-6)
    looped = jvp(lambda x: lax.while_loop(lambda c: c < 100, p.bind, x), (3.0,), (1.0,))
    np.testing.assert_allclose(looped, (19683.0, 9 * 9.0 * 9 * 27.0**2), rtol=1e-6)


def test_linear_primitives_are_transposed_by_their_own_rule() -> None:
    seen: list[Any] = []
    p = doubled(seen)
    np.testing.assert_allclose(grad(lambda x: jnp.sin(p.bind(x)).sum())(X), 2 * np.cos(2 * X), rtol=1e-5)
    assert len(seen) == 1 and isinstance(seen[0], Linear) and seen[0].aval.shape == (3,)
    result, pull = vjp(p.bind, X)
    np.testing.assert_array_equal(pull(result)[0], 4 * X)
    _, push = linearize(p.bind, X)
    np.testing.assert_array_equal(push(Y), 2 * Y)


def test_evaluation_outside_of_jit() -> None:
    p = scaled_add()
    calls: list[float] = []

    @p.def_evaluate
    def _(x: Any, y: Any, *, scale: float) -> Any:
        calls.append(scale)
        return np.asarray(x) + np.float32(scale) * np.asarray(y) ** 2

    np.testing.assert_allclose(p.bind(X, Y, scale=3.0), X + 3 * Y * Y)
    assert calls == [3.0]
    np.testing.assert_allclose(jit(lambda x, y: p.bind(x, y, scale=3.0))(X, Y), X + 3 * Y * Y)
    assert calls == [3.0]


def test_several_results_integers_and_weak_types() -> None:
    p = Primitive("parts", lambda x: {"floor": jnp.floor(x), "index": x.astype(int)})
    found = p.bind(X)
    np.testing.assert_array_equal(found["floor"], np.floor(X))
    assert found["index"].dtype == np.int32
    np.testing.assert_array_equal(grad(lambda x: p.bind(x)["floor"].sum())(X), [0, 0, 0])
    assert Primitive("twice", lambda x: x * 2).bind(2.0).weak_type


def test_the_meaning_is_traced_once_for_each_type_and_parameter() -> None:
    traced: list[Any] = []

    def meaning(x: Any, *, n: int) -> Any:
        traced.append((x.shape, n))
        return x * n

    p = Primitive("times", meaning)
    for n in (2, 2, 3):
        for x in (X, Y, X[:2]):
            p.bind(x, n=n)
            jit(lambda x, n=n: p.bind(x, n=n))(x)
    assert sorted(traced) == [((2,), 2), ((2,), 3), ((3,), 2), ((3,), 3)]


def test_lines_are_those_of_the_use() -> None:
    p = scaled_add()
    module = make_hlo(lambda x, y: p.bind(x, y, scale=2.0))(X, Y)
    (call,) = [i for i in module.entry.instructions if i.opcode is Opcode.CALL]
    assert call.metadata is not None and call.metadata.source_file.endswith("test_primitives.py")
    inner = [i.metadata for i in call.attributes.to_apply.instructions if i.metadata is not None]
    assert all(m.op_name == "scaled_add" and not m.source_file for m in inner)
    optimized = jit(lambda x, y: p.bind(x, y, scale=2.0)).lower(X, Y).compile().as_text(metadata=True)
    assert "test_primitives.py" in optimized


# --- what is refused


def test_refusals() -> None:
    with pytest.raises(NotImplementedError, match="has no meaning"):
        Primitive("nothing").bind(X)
    with pytest.raises(TypeError, match="must be hashable"):
        scaled_add().bind(X, Y, scale=[1])
    with pytest.raises(ValueError, match="needs a name"):
        Primitive("")
    wrong = scaled_add()
    wrong.def_evaluate(lambda x, y, *, scale: x[:2])
    with pytest.raises(TypeError, match=r"the evaluate rule of scaled_add gives float32\[2\]"):
        wrong.bind(X, Y, scale=1.0)
    backwards = Primitive("backwards", lambda x: x + x)
    backwards.def_linear(lambda ct, x: (ct, ct))
    with pytest.raises(TypeError, match="2 cotangents for 1 operands"):
        grad(lambda x: backwards.bind(x).sum())(X)
    bent = Primitive("bent", lambda x: x + x)
    bent.def_jvp(lambda primals, tangents: (bent.bind(*primals), tangents[0][:1]))
    with pytest.raises(TypeError, match=r"float32\[1\] as the tangent of float32\[3\]"):
        grad(lambda x: bent.bind(x).sum())(X)


def test_a_meaning_with_a_tracer_from_outside() -> None:
    """It is an operand of the call, and is not kept for other calls."""

    def f(x: Any, y: Any) -> Any:
        p = Primitive("closing", lambda x: x * y)
        return p.bind(x).sum() + p.bind(2 * x).sum()

    np.testing.assert_allclose(jit(f)(X, Y), 3 * (X * Y).sum(), rtol=1e-6)
    np.testing.assert_allclose(jit(grad(f, argnums=1))(X, Y), 3 * X, rtol=1e-6)


# --- effects


def act(x: Any, name: str) -> Any:
    attributes = CustomCallAttributes(name, has_side_effect=True)
    return bind(Opcode.CUSTOM_CALL, (x,), attributes, shape=x.aval.hlo)


def _acting(computation: Any) -> list[str]:
    return [i.attributes.custom_call_target for i in computation.instructions if i.opcode is Opcode.CUSTOM_CALL]


def test_an_unused_effect_is_recorded_in_order() -> None:
    def f(x: Any) -> Any:
        act(x, "first")
        y = act(x + 1, "second")
        act(x, "third")
        return y

    assert _acting(make_hlo(f)(X).entry) == ["first", "second", "third"]


def test_an_unused_effect_within_calls_and_loops() -> None:
    p = Primitive("acting", lambda x: act(x, "inside"))

    def f(x: Any) -> Any:
        jit(p.bind)(x)
        lax.fori_loop(0, 3, lambda i, c: (act(c, "looped"), c)[1], x)
        lax.cond(x[0] > 0, lambda x: act(x, "chosen"), lambda x: x, x)
        return x

    opcodes = [i.opcode for i in make_hlo(f)(X).entry.instructions]
    assert opcodes.count(Opcode.CALL) == 2 and opcodes.count(Opcode.CONDITIONAL) == 1
