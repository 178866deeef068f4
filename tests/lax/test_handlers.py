"""Classes of libraries as arrays: the tables of jax.interpreters.xla and jax.core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.core
import hloom.numpy as jnp
from hloom import lax
from hloom.interpreters import xla

pytestmark = pytest.mark.usefixtures("evaluator")


class Variable:
    """Stands for an array, as TensorFlow Probability's variables do."""

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)

    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)


@pytest.fixture
def known() -> Iterator[None]:
    xla.canonicalize_dtype_handlers[Variable] = lambda x: xla.canonicalize_dtype_handlers[np.ndarray](x.value)
    hloom.core.pytype_aval_mappings[Variable] = hloom.core.pytype_aval_mappings[np.ndarray]
    hloom.core.pytype_aval_mappings[Variable] = lambda x: hloom.core.pytype_aval_mappings[np.ndarray](x.value)
    yield
    del xla.canonicalize_dtype_handlers[Variable]
    del hloom.core.pytype_aval_mappings[Variable]


def test_an_object_is_an_argument(known: None) -> None:
    x = Variable([1.0, 2.0])
    assert str(hloom.typeof(x)) == "float32[2]"
    assert lax.add(x, 1.0).tolist() == [2.0, 3.0]
    assert hloom.jit(lambda x: x * 2)(x).tolist() == [2.0, 4.0]
    assert hloom.jit(lambda t: t["a"] * 2)({"a": x}).tolist() == [2.0, 4.0]
    assert hloom.vmap(lambda x: x * 2)(x).tolist() == [2.0, 4.0]
    assert hloom.grad(lambda x: lax.mul(x, x).sum())(x).tolist() == [2.0, 4.0]
    assert hloom.eval_shape(lambda x: x, x).shape == (2,)


def test_without_a_handler_it_is_none() -> None:
    with pytest.raises(TypeError, match="not a valid JAX type"):
        lax.add(Variable([1.0]), 1.0)
    with pytest.raises(TypeError, match="abstract array"):
        hloom.jit(lambda x: x)(Variable([1.0]))


def test_the_librarys_own_are_there_and_stay() -> None:
    for value in (np.ones(2), 1.0, np.int32(3), jnp.ones(2)):
        kind = type(value)
        np.testing.assert_array_equal(xla.canonicalize_dtype_handlers[kind](value), value)
        assert hloom.core.pytype_aval_mappings[kind](value) == hloom.typeof(value)
    with pytest.raises(TypeError, match="library's own"):
        xla.canonicalize_dtype_handlers[float] = float
    with pytest.raises(KeyError):
        xla.canonicalize_dtype_handlers[Variable]
    assert isinstance(hloom.devices()[0].client, xla.Backend)
    assert xla.apply_primitive(lax.add_p, 1.0, 2.0) == 3.0
