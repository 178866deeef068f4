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
    with pytest.raises(UnsupportedError, match="make_pair is about a value of a type of its library"):
        hloom.jit(lambda x: make.bind(x, x).first)(1.0)
    with pytest.raises(TypeError, match="Pair"):
        hloom.jit(first.bind)(pair)


def test_a_primitive_that_says_nothing() -> None:
    with pytest.raises(NotImplementedError, match="abstract_eval"):
        hijax.HiPrimitive("empty").bind(1.0)


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
