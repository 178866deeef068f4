"""Primitives and types of hloom.experimental.hijax; devices and values of all processes; there is one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.errors import UnsupportedError
from hloom.experimental import hijax, mesh_utils, multihost_utils


class Cubed(hijax.HiPrimitive):
    """x**3, with three times its derivative, so that one sees which rule was used."""

    def abstract_eval(self, x: Any) -> Any:
        return x, set()

    def to_lojax(self, x: Any) -> Any:
        return x * x * x

    def jvp(self, primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return self.bind(x), 9 * x * x * t


class Doubled(hijax.HiPrimitive):
    """2 x, with the derivative of its expansion."""

    def abstract_eval(self, x: Any) -> Any:
        return x, set()

    def to_lojax(self, x: Any) -> Any:
        return 2 * x


def test_a_primitive_is_what_it_says_in_arrays_and_has_its_own_derivative() -> None:
    cubed, doubled = Cubed("cubed"), Doubled("doubled")
    assert cubed.bind(jnp.float32(2)) == 8
    assert hloom.jit(cubed.bind)(jnp.float32(2)) == 8
    assert hloom.grad(cubed.bind)(2.0) == 36
    assert hloom.grad(lambda x: doubled.bind(x) * x)(3.0) == 12
    np.testing.assert_array_equal(hloom.vmap(cubed.bind)(jnp.arange(3.0)), [0, 1, 8])


class Pair:
    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


class PairType(hijax.HiType):
    pass


class PairSpec(hijax.MappingSpec):
    pass


class MakePair(hijax.HiPrimitive):
    def abstract_eval(self, first: Any, second: Any) -> Any:
        return PairType(), set()

    def to_lojax(self, first: Any, second: Any) -> Any:
        return Pair(first, second)


class First(hijax.HiPrimitive):
    def abstract_eval(self, pair: Any) -> Any:
        assert isinstance(pair, PairType)
        return hloom.typeof(1.0), set()

    def to_lojax(self, pair: Any) -> Any:
        return pair.first


def test_values_of_own_types_are_made_and_read_outside_of_transformations() -> None:
    hijax.register_hitype(Pair, lambda pair: PairType())
    make, first = MakePair("make_pair"), First("first")
    pair = make.bind(1.5, 2.0)
    assert isinstance(hloom.typeof(pair), PairType)
    assert first.bind(pair) == 1.5
    with pytest.raises(AttributeError, match="PairType has no attribute 'first'"):
        hloom.jit(lambda x: make.bind(x, x).first)(1.0)
    with pytest.raises(NotImplementedError, match=r"vmap requires .*PairType.* to implement the `dec_rank` method"):
        hloom.vmap(first.bind, in_axes=(PairSpec(),), axis_size=2)(pair)


class Swap(hijax.VJPHiPrimitive):
    """Of a pair."""

    def __init__(self) -> None:
        self.in_avals, self.out_aval, self.params = (PairType(),), PairType(), {}
        super().__init__()

    def expand(self, pair: Any) -> Any:
        return Pair(pair.second, pair.first)


class Counter:
    pass


class CounterType(hijax.MutableHiType):
    pass


class Count(hijax.VJPHiPrimitive):
    def __init__(self) -> None:
        self.in_avals, self.out_aval, self.params = (CounterType(),), hloom.typeof(1), {}
        super().__init__()

    def expand(self, counter: Any) -> Any:
        return 1


def test_values_that_can_change_are_used_outside_of_transformations() -> None:
    hijax.register_hitype(Pair, lambda pair: PairType())
    assert Swap()(Pair(1.5, jnp.arange(2))).second == 1.5
    hijax.register_hitype(Counter, lambda counter: CounterType())
    counter = Counter()
    assert Count()(counter) == 1
    with pytest.raises(UnsupportedError, match="Count is about a value of a type of its library"):
        hloom.jit(lambda x: x + Count()(counter))(1)
    with pytest.raises(TypeError, match="Counter"):
        hloom.jit(lambda counter: 1)(counter)


def test_a_primitive_that_says_nothing() -> None:
    with pytest.raises(NotImplementedError, match="abstract_eval"):
        hijax.HiPrimitive("empty").bind(1.0)


class Operation(hijax.VJPHiPrimitive):
    """x**3. A subclass says its derivative by a factor of its own, so that one sees which rule was used."""

    def __init__(self, x: Any) -> None:
        self.in_avals, self.out_aval, self.params = (hloom.typeof(x),), hloom.typeof(x), {}
        super().__init__()

    def expand(self, x: Any) -> Any:
        return x**3


class WithBoth(Operation):
    def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:
        return self(x), x

    def vjp_bwd_retval(self, x: Any, ct: Any) -> Any:
        return (2 * 3 * x**2 * ct,)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return self(x), 10 * 3 * x**2 * t


class WithLinear(Operation):
    def lin(self, nzs_in: Any, x: Any) -> Any:
        return self(x), 4 * 3 * x**2

    def linearized(self, slope: Any, t: Any) -> Any:
        return slope * t


class WithJvp(Operation):
    def jvp(self, primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return self(x), 10 * 3 * x**2 * t


class FromJvp(WithJvp):
    lin, linearized = hijax.linearize_from_jvp
    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_jvp


class FromLinear(WithLinear):
    jvp = hijax.jvp_from_lin
    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin


class ThroughLinear(WithJvp):
    lin, linearized = hijax.linearize_from_jvp
    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin


FACTORS = {Operation: (1, 1), WithBoth: (2, 10), WithLinear: (4, 4), WithJvp: (10, 10), FromJvp: (10, 10),
           FromLinear: (4, 4), ThroughLinear: (10, 10)}  # fmt: skip
"""Of the derivative in reverse mode, and in forward mode."""


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("compiled", [False, True])
def test_rules_of_both_modes(kind: type[Operation], compiled: bool) -> None:
    def f(x: Any) -> Any:
        return kind(x)(x)

    backwards, forwards = FACTORS[kind]
    run = hloom.jit if compiled else lambda f: f
    x, batch = jnp.float32(2), jnp.array([2.0, 0.0])
    assert run(f)(x) == 8
    assert run(hloom.grad(f))(x) == backwards * 12
    assert run(lambda x: hloom.jvp(f, (x,), (1.0,)))(x) == (8, forwards * 12)
    assert run(hloom.jacfwd(f))(x) == forwards * 12
    assert run(lambda x: hloom.linearize(f, x)[1](1.0))(x) == forwards * 12
    assert run(hloom.vmap(hloom.grad(f)))(batch).tolist() == [backwards * 12, 0]
    assert run(hloom.grad(lambda x: hloom.vmap(f)(x).sum()))(batch).tolist() == [backwards * 12, 0]
    assert run(lambda x: hloom.jvp(hloom.vmap(f), (x,), (x,)))(batch)[1].tolist() == [forwards * 24, 0]
    assert run(hloom.vmap(lambda x: hloom.linearize(f, x)[1](1.0)))(batch).tolist() == [forwards * 12, 0]
    assert run(hloom.grad(hloom.grad(f)))(x) == backwards * 12
    assert run(hloom.jacfwd(hloom.jacfwd(f)))(x) == forwards * 12
    assert run(hloom.jacfwd(hloom.jacrev(f)))(x) == backwards * 12


def test_an_operation_with_its_own_rule_within_the_rule() -> None:
    """The second derivative uses the rule again, whose factor 3 the loop in `expand` does not have."""

    class Root(hijax.HiPrim):
        def __init__(self, x: Any) -> None:
            self.in_avals, self.out_aval, self.params = (hloom.typeof(x),), hloom.typeof(x), {}
            super().__init__()

        def expand(self, x: Any) -> Any:
            return hloom.lax.while_loop(lambda y: abs(y * y - x) > 1e-6 * x, lambda y: (y + x / y) / 2, x)

        def vjp_fwd(self, nzs_in: Any, x: Any) -> Any:
            return (y := self(x)), y

        def vjp_bwd(self, y: Any, ct: Any, accumulator: Any) -> None:
            accumulator.accum(3 * ct / (2 * y))

    def root(x: Any) -> Any:
        return Root(x)(x)

    np.testing.assert_allclose(hloom.grad(hloom.grad(root))(4.0), -9 / 32, rtol=1e-5)
    with pytest.raises(TypeError, match="forward-mode autodiff"):
        hloom.jvp(root, (4.0,), (1.0,))


def test_a_rule_for_batches() -> None:
    class Product(hijax.HiPrim):
        def __init__(self, a: Any, x: Any) -> None:
            self.in_avals, self.params = (hloom.typeof(a), hloom.typeof(x)), {}
            self.out_aval = {"y": hijax.ShapedArray(a.shape[:1], a.dtype)}
            super().__init__()

        def expand(self, a: Any, x: Any) -> Any:
            return {"y": a @ x}

        def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
            assert axis_data.size == 4 and dims == (None, 0)
            return {"y": 100 * (args[0] @ args[1].T)}, {"y": 1}

    def product(a: Any, x: Any) -> Any:
        return Product(a, x)(a, x)["y"]

    a, xs = jnp.arange(6.0).reshape(2, 3), jnp.arange(12.0).reshape(4, 3)
    for run in (lambda f: f, hloom.jit):
        np.testing.assert_array_equal(run(hloom.vmap(product, (None, 0)))(a, xs), 100 * (xs @ a.T))
        np.testing.assert_array_equal(run(product)(a, xs[1]), a @ xs[1])


def test_accumulators() -> None:
    accumulator = hijax.ValAccum(hloom.typeof(jnp.float32(1)))
    assert isinstance(accumulator.freeze(), hijax.Zero)
    for x in (None, 1.0, 2.0, hijax.Zero(accumulator.aval)):
        accumulator.accum(x)
        hijax.NullAccum(accumulator.aval).accum(x)
    assert accumulator.freeze() == 3 and repr(accumulator) == "ValAccum(float32[])"
    assert isinstance(hijax.RefAccum(accumulator.aval).freeze(), hijax.Zero)
    for given in (None, hloom.new_ref(jnp.float32(0))):
        of_ref = hijax.RefAccum(accumulator.aval, given)
        for x in (None, jnp.float32(1), jnp.float32(2)):
            of_ref.accum(x)
        assert of_ref.freeze() == 3


def test_one_process_with_one_device() -> None:
    assert mesh_utils.create_device_mesh((1, 1)).tolist() == [[hloom.devices()[0]]]
    with pytest.raises(ValueError, match="Number of devices 1"):
        mesh_utils.create_device_mesh((2,))
    tree = {"a": jnp.arange(3), "b": 2.0}
    gathered = multihost_utils.process_allgather(tree)
    assert gathered["a"].shape == (1, 3) and gathered["b"].shape == (1,)
    assert multihost_utils.process_allgather(tree, tiled=True)["a"].tolist() == [0, 1, 2]
    assert multihost_utils.broadcast_one_to_all(tree)["b"] == 2.0
    multihost_utils.sync_global_devices("here")
    multihost_utils.assert_equal(tree)
    with pytest.raises(TypeError, match="no array"):
        multihost_utils.assert_equal([object()])


def test_what_a_value_of_an_own_type_holds() -> None:
    class Box:
        def cur_qdd(self) -> str:
            return "content"

    assert hloom.experimental.cur_qdd(Box()) == "content"
    with pytest.raises(UnsupportedError, match="outside of jit"):
        hloom.jit(lambda x: hloom.experimental.cur_qdd(Box()))(1.0)


def test_the_setting_of_64_bits_by_its_other_name() -> None:
    assert hloom.config.x64_enabled is hloom.config.jax_enable_x64
    with hloom.enable_x64(True):
        assert hloom.config.x64_enabled is True
