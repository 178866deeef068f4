"""Values of types that libraries declare (`hijax.HiType`) under jit, derivatives, vmap, loops and branches: a quantized
array with float tangents, and a pair with the tangents of its arrays."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.errors import TreeStructureError
from hloom.experimental import hijax
from hloom.experimental.hijax import ShapedArray

pytestmark = pytest.mark.usefixtures("evaluator")


@dataclasses.dataclass(frozen=True)
class Quantized:
    values: Any
    scale: Any


@dataclasses.dataclass(frozen=True)
class QuantizedSpec(hijax.MappingSpec):
    pass


@dataclasses.dataclass(frozen=True)
class QuantizedType(hijax.HiType):
    shape: tuple[int, ...]

    def lo_ty(self) -> Any:
        return [ShapedArray(self.shape, jnp.int8), ShapedArray(self.shape[:-1], jnp.float32)]

    def lower_val(self, hi_val: Any) -> Any:
        return [hi_val.values, hi_val.scale]

    def raise_val(self, *lo_vals: Any) -> Any:
        return Quantized(*lo_vals)

    def to_tangent_aval(self) -> Any:
        return ShapedArray(self.shape, jnp.float32)

    def dec_rank(self, size: Any, spec: Any) -> Any:
        return QuantizedType(self.shape[1:])

    def inc_rank(self, size: Any, spec: Any) -> Any:
        return QuantizedType((size, *self.shape))

    def leading_axis_spec(self) -> Any:
        return QuantizedSpec()


class Quantize(hijax.VJPHiPrimitive):
    def __init__(self, aval: Any) -> None:
        self.in_avals, self.out_aval, self.params = (aval,), QuantizedType(aval.shape), {}
        super().__init__()

    def expand(self, x: Any) -> Any:
        scale = jnp.max(jnp.abs(x), axis=-1) / 127
        return Quantized(jnp.round(x / scale[..., None]).astype(jnp.int8), scale)

    def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:
        return self(x), None

    def vjp_bwd_retval(self, res: Any, g: Any) -> Any:
        return (g,)


class Dequantize(hijax.VJPHiPrimitive):
    def __init__(self, aval: Any) -> None:
        self.in_avals, self.out_aval, self.params = (aval,), ShapedArray(aval.shape, jnp.float32), {}
        super().__init__()

    def expand(self, q: Any) -> Any:
        return q.values.astype(jnp.float32) * q.scale[..., None]

    def vjp_fwd(self, nzs_in: Any, q: Any) -> Any:
        return self(q), q

    def vjp_bwd_retval(self, q: Any, g: Any) -> Any:
        return (3 * g,)  # not the derivative of the expansion: so one sees which rule was used


hijax.register_hitype(Quantized, lambda q: QuantizedType(q.values.shape))
X = jnp.array([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]])
BATCH = jnp.stack([X, 2 * X, X + 1, X - 7])


def quantize(x: Any) -> Any:
    return Quantize(hloom.typeof(x))(x)


def dequantize(q: Any) -> Any:
    return Dequantize(hloom.typeof(q))(q)


def loss(q: Any) -> Any:
    return jnp.sum(dequantize(q) ** 2)


def through(x: Any) -> Any:
    return loss(quantize(x))


def close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


Q = quantize(X)
ROUND = dequantize(Q)
GRADIENT = 6 * ROUND


def test_within_jit_it_is_known_by_its_type() -> None:
    made = hloom.jit(quantize)(X)
    assert isinstance(made, Quantized) and made.values.dtype == jnp.int8
    close(hloom.jit(dequantize)(made), ROUND)
    close(hloom.jit(lambda x: dequantize(quantize(x)))(X), ROUND)
    close(hloom.jit(lambda: dequantize(Q))(), ROUND)
    assert isinstance(hloom.jit(lambda q: q)(Q), Quantized)
    close(hloom.jit(dequantize).lower(Q).compile()(Q), ROUND)
    with pytest.raises(AttributeError, match="QuantizedType has no attribute 'values'"):
        hloom.jit(lambda q: q.values)(Q)
    assert hloom.jit(lambda q: q.shape[0])(Q) == 2


@pytest.mark.parametrize("wrap", [lambda f: f, hloom.jit], ids=["plain", "jit"])
def test_derivatives_follow_the_rules_and_have_the_tangent_s_type(wrap: Any) -> None:
    close(wrap(hloom.grad(through))(X), GRADIENT)
    close(hloom.grad(wrap(through))(X), GRADIENT)
    close(wrap(hloom.grad(loss))(Q), GRADIENT)
    close(hloom.grad(wrap(loss))(Q), GRADIENT)
    value, (by_x, by_q) = hloom.value_and_grad(lambda x, q: jnp.sum(x * dequantize(q)), (0, 1))(X, Q)
    close(value, jnp.sum(X * ROUND))
    close(by_x, ROUND)
    close(by_q, 3 * X)
    out, pull = hloom.vjp(wrap(quantize), X)
    assert isinstance(out, Quantized)
    close(pull(2 * X)[0], 2 * X)
    out, pull = hloom.vjp(wrap(dequantize), Q)
    close(pull(X)[0], 3 * X)


def test_vmap_maps_it_along_a_spec() -> None:
    spec = QuantizedSpec()
    batch = hloom.vmap(quantize, out_axes=spec)(BATCH)
    assert isinstance(batch, Quantized) and batch.values.shape == (4, 2, 3) and batch.scale.shape == (4, 2)
    wanted = jnp.stack([dequantize(quantize(x)) for x in BATCH])
    close(hloom.vmap(dequantize, in_axes=spec, axis_size=4)(batch), wanted)
    close(hloom.vmap(hloom.jit(dequantize), in_axes=spec, axis_size=4)(batch), wanted)
    close(hloom.vmap(hloom.grad(through))(BATCH), 6 * wanted)
    close(hloom.jit(hloom.vmap(hloom.grad(loss), in_axes=spec, axis_size=4))(batch), 6 * wanted)
    close(hloom.grad(lambda b: jnp.sum(hloom.vmap(dequantize, in_axes=spec, axis_size=4)(b)))(batch), 3 + 0 * wanted)
    with pytest.raises(ValueError, match="vmap in_axes has the integer 0 for a value of the non-array type"):
        hloom.vmap(dequantize, axis_size=4)(batch)


def test_loops_and_branches() -> None:
    def twice(q: Any) -> Any:
        return quantize(2 * dequantize(q))

    close(dequantize(lax.cond(True, twice, lambda q: q, Q)), 2 * ROUND)
    close(dequantize(lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, twice(s[1])), (0, Q))[1]), 4 * ROUND)
    close(dequantize(lax.fori_loop(0, 2, lambda i, q: twice(q), Q)), 4 * ROUND)
    close(dequantize(lax.scan(lambda q, _: (twice(q), None), Q, None, length=2)[0]), 4 * ROUND)
    batch = hloom.vmap(quantize, out_axes=QuantizedSpec())(BATCH)

    def total(start: Any, batch: Any) -> Any:
        return lax.scan(lambda t, q: (t + jnp.sum(dequantize(q)), twice(q)), start, batch, length=4)

    found, stacked = hloom.jit(total)(0.0, batch)
    close(found, jnp.sum(dequantize(batch)))
    close(dequantize(stacked), 2 * dequantize(batch))
    close(hloom.grad(lambda b: total(0.0, b)[0])(batch), jnp.full((4, 2, 3), 3.0))

    def by_branch(x: Any) -> Any:
        return jnp.sum(dequantize(lax.cond(x[0, 0] > 0, twice, lambda q: q, quantize(x))))

    close(hloom.grad(by_branch)(X), 18 + 0 * X)
    with pytest.raises(ValueError, match="must provide `length`"):
        lax.scan(lambda t, q: (t, ()), 0.0, batch)
    with pytest.raises(TreeStructureError, match="carry input and carry output must have equal types"):
        lax.scan(lambda q, _: (quantize(jnp.ones((1, 3))), None), Q, None, length=2)


@dataclasses.dataclass
class Both:
    parts: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class BothType(hijax.HiType):
    types: tuple[Any, ...]

    def lo_ty(self) -> Any:
        return list(self.types)

    def lower_val(self, hi_val: Any) -> Any:
        return list(hi_val.parts)

    def raise_val(self, *lo_vals: Any) -> Any:
        return Both(lo_vals)

    def to_tangent_aval(self) -> Any:
        return BothType(tuple([t.to_tangent_aval() for t in self.types]))

    def vspace_add(self, x: Any, y: Any) -> Any:
        return make(*[part(x, k) + part(y, k) for k in range(2)])

    part = hijax.aval_method(lambda self, k: part(self, k))
    count = hijax.aval_property(lambda self: len(hloom.typeof(self).types))


class Make(hijax.HiPrimitive):
    def abstract_eval(self, *types: Any) -> Any:
        return BothType(types), set()

    def to_lojax(self, *parts: Any) -> Any:
        return Both(parts)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return make(*primals), make(*tangents)


class Part(hijax.HiPrimitive):
    def abstract_eval(self, both: Any, *, k: int) -> Any:
        return both.types[k], set()

    def to_lojax(self, both: Any, *, k: int) -> Any:
        return both.parts[k]

    def jvp(self, primals: Any, tangents: Any, *, k: int) -> Any:
        return part(*primals, k), 10 * part(*tangents, k)


hijax.register_hitype(Both, lambda both: BothType(tuple(map(hloom.typeof, both.parts))))
MAKE, PART = Make("make"), Part("part")


def make(*parts: Any) -> Any:
    return MAKE.bind(*parts)


def part(both: Any, k: int) -> Any:
    return PART.bind(both, k=k)


def test_a_type_with_the_tangents_of_its_arrays() -> None:
    both = make(jnp.float32(2), jnp.float32(3))
    assert hloom.jit(lambda b: b.part(0) * b.count)(both) == 4

    def product(b: Any) -> Any:
        return part(b, 0) * part(b, 1)

    gradient = hloom.grad(product)(both)
    assert isinstance(gradient, Both) and gradient.parts == (30, 20)
    assert hloom.grad(lambda x: product(make(x, x + 1)))(2.0) == 50
    direction = make(jnp.float32(1), jnp.float32(0))
    out, moved = hloom.jvp(hloom.jit(lambda b: make(product(b), part(b, 0))), (both,), (direction,))
    assert isinstance(moved, Both) and out.parts == (6, 2) and moved.parts == (30, 10)
    out, push = hloom.linearize(product, both)
    assert push(make(jnp.float32(0), jnp.float32(1))) == 20


def test_a_type_that_does_not_say_its_arrays_is_differentiated_outside_of_jit() -> None:
    @dataclasses.dataclass(frozen=True)
    class Opaque:
        array: Any

    @dataclasses.dataclass(frozen=True)
    class OpaqueType(hijax.HiType):
        shape: tuple[int, ...]

        def to_tangent_aval(self) -> Any:
            return ShapedArray(self.shape, jnp.float32)

    class Hide(Quantize):
        def __init__(self, aval: Any) -> None:
            super().__init__(aval)
            self.out_aval = OpaqueType(aval.shape)
            hijax.VJPHiPrimitive.__init__(self)

        def expand(self, x: Any) -> Any:
            return Opaque(x)

    class Show(Dequantize):
        def expand(self, opaque: Any) -> Any:
            return opaque.array

    hijax.register_hitype(Opaque, lambda opaque: OpaqueType(opaque.array.shape))

    def shown(x: Any) -> Any:
        hidden = Hide(hloom.typeof(x))(x)
        return jnp.sum(Show(hloom.typeof(hidden))(hidden))

    close(hloom.grad(shown)(X), 3 + 0 * X)
    with pytest.raises(NotImplementedError, match=r"a program requires .*OpaqueType.* to implement the `lo_ty` method"):
        hloom.jit(lambda opaque: 1)(Opaque(X))


def test_an_operation_without_rules_has_no_derivative() -> None:
    class Negated(hijax.VJPHiPrimitive):
        def __init__(self, aval: Any) -> None:
            self.in_avals, self.out_aval, self.params = (aval,), aval, {}
            super().__init__()

        def expand(self, q: Any) -> Any:
            return Quantized(-q.values, q.scale)

    close(hloom.jit(lambda q: dequantize(Negated(hloom.typeof(q))(q)))(Q), -ROUND)
    with pytest.raises(NotImplementedError, match="must implement `vjp_fwd`"):
        hloom.grad(lambda q: loss(Negated(hloom.typeof(q))(q)))(Q)
