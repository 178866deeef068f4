"""Small facts about arrays, trees and derivatives on which users of JAX rely."""

from __future__ import annotations

import collections
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax, nn, tree, tree_util
from support.evaluator_fixture import on_the_evaluator  # noqa: F401  # a fixture

# ---- matrices in the last two dimensions

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("offset", [-1, 0, 2])
def test_linalg_has_matrices_in_the_last_dimensions(offset: int) -> None:
    np.testing.assert_array_equal(np.asarray(jnp.linalg.diagonal(A, offset=offset)), np.diagonal(A, offset, -2, -1))
    np.testing.assert_array_equal(np.asarray(jnp.linalg.trace(A, offset=offset)), np.trace(A, offset, -2, -1))
    np.testing.assert_array_equal(np.asarray(jnp.diagonal(A, offset)), np.diagonal(A, offset))


def test_linalg_outer_takes_vectors() -> None:
    assert jnp.linalg.outer(jnp.arange(2), jnp.arange(3)).tolist() == [[0, 0, 0], [0, 1, 2]]
    with pytest.raises(hloom.errors.OperandError, match="both must have one dimension"):
        jnp.linalg.outer(A, A)


def test_vecdot() -> None:
    x = jnp.asarray([100, 100], "int8")
    found = jnp.vecdot(x, x)
    assert (found.dtype, int(found)) == (np.int8, (20000 + 128) % 256 - 128)
    assert jnp.vecdot(x, x, preferred_element_type="int32").tolist() == 20000
    y = np.asarray([1 + 2j, 3j], np.complex64)
    np.testing.assert_allclose(np.asarray(jnp.vecdot(y, y)), np.vdot(y, y))
    np.testing.assert_allclose(np.asarray(jnp.linalg.vecdot(A, A[0], axis=-2)), (A * A[0]).sum(1))
    np.testing.assert_allclose(np.asarray(jnp.vecdot(A, A[:, :1])), (A * A[:, :1]).sum(-1))
    with pytest.raises(hloom.errors.OperandError, match="vecdot"):
        jnp.vecdot(jnp.ones(3), jnp.ones(1))


# ---- spread


@pytest.mark.parametrize("function", [jnp.var, jnp.std, jnp.nanvar, jnp.nanstd])
@pytest.mark.parametrize(("ddof", "wanted"), [(1, False), (2, True), (3, True)])
def test_no_degrees_of_freedom(function: Callable[..., Any], ddof: int, wanted: bool) -> None:
    for x in (jnp.asarray([1.0, 1.0]), jnp.asarray([1.0, 9.0])):
        assert bool(jnp.isnan(function(x, ddof=ddof))) is wanted
        assert bool(jnp.isnan(hloom.jit(lambda x: function(x, ddof=ddof))(x))) is wanted


def test_spread_of_chosen_elements_without_degrees_of_freedom() -> None:
    x, chosen = jnp.asarray([1.0, 5.0, 9.0]), np.array([True, False, True])
    assert jnp.isnan(jnp.var(x, ddof=2, where=chosen))
    assert float(jnp.var(x, ddof=1, where=chosen)) == 32


# ---- loops that run as Python


@pytest.mark.parametrize("loop", ["while", "fori", "scan"])
def test_a_loop_without_jit_does_not_write_to_the_callers_array(loop: str) -> None:
    carry = np.array([55])

    def body(c: Any) -> Any:
        c += 1
        return c

    with hloom.disable_jit():
        if loop == "while":
            found = lax.while_loop(lambda c: c[0] < 60, body, carry)
        elif loop == "fori":
            found = lax.fori_loop(0, 5, lambda i, c: body(c), carry)
        else:
            found = lax.scan(lambda c, _: (body(c), None), carry, None, length=5)[0]
    assert isinstance(found, hloom.Array)
    assert found.tolist() == [60]
    assert carry.tolist() == [55]


def test_control_flow_of_traced_values_without_jit() -> None:
    """A traced function cannot run as Python: it is recorded."""
    with hloom.disable_jit():
        shape = hloom.eval_shape(lambda x: lax.while_loop(lambda c: c < 3, lambda c: c * 2, x), 1.0)
        assert shape.shape == ()
        assert hloom.eval_shape(lambda p: lax.cond(p, lambda: 1, lambda: 2), True).dtype == np.int32
        assert hloom.eval_shape(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0), 3).dtype == np.int32
        assert lax.scan(lambda c, x: (c, x), 1.0, jnp.zeros((0, 2)))[1].shape == (0, 2)


# ---- structures

Point = collections.namedtuple("Point", "x y")


def test_treedef() -> None:
    value = {"a": 1, "b": (2, None)}
    leaves, treedef = tree.flatten(value)
    assert str(treedef) == repr(treedef) == "PyTreeDef({'a': *, 'b': (*, None)})"
    assert isinstance(treedef, tree.PyTreeDef)
    assert tree_util.PyTreeDef is tree.PyTreeDef
    assert treedef == tree_util.tree_structure({"a": 5, "b": (6, None)}) != tree.structure([1])
    assert hash(treedef) == hash(tree.structure(value))
    assert treedef != "PyTreeDef"
    assert (treedef.num_leaves, treedef.num_nodes) == (2, 5)
    assert treedef.unflatten(leaves) == tree.unflatten(treedef, leaves) == value
    assert treedef.flatten_up_to({"a": [1, 2], "b": (3, None)}) == [[1, 2], 3]
    assert [str(c) for c in treedef.children()] == ["PyTreeDef(*)", "PyTreeDef((*, None))"]
    assert treedef.node_data() == (dict, ["a", "b"])
    assert tree.structure(1).node_data() is None
    assert tree.structure((1, 2)).node_data() == (tuple, None)
    assert str(tree.structure((1, 2)).compose(tree.structure([3]))) == "PyTreeDef(([*], [*]))"
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert tree.transpose(treedef, None, {"a": [1, 2], "b": ([3, 4], None)}) == [
        {"a": 1, "b": (3, None)},
        {"a": 2, "b": (4, None)},
    ]
    assert tree.transpose(treedef, tree.structure([0, 0]), {"a": [1, 2], "b": ([3, 4], None)})[1]["a"] == 2
    assert tree.flatten_with_path(value)[1] == treedef
    with pytest.raises(TypeError, match="PyTreeDef is needed"):
        tree.unflatten("x", leaves)  # type: ignore[arg-type]


def test_messages_name_structures_as_users_see_them() -> None:
    with pytest.raises(ValueError, match=r"got PyTreeDef\(\(\*, \*\)\), but expected PyTreeDef\(\*\)"):
        hloom.vjp(jnp.sin, 1.0)[1]((1.0, 1.0))
    with pytest.raises(TypeError, match=r"Output was a pytree: PyTreeDef"):
        hloom.grad(lambda x: (x, x))(1.0)


# ---- derivatives


@pytest.mark.parametrize("cotangent", [np.int32(1), 1, 1.0, True, np.int8(1), np.zeros((), hloom.float0)])
def test_a_cotangent_of_an_integer_has_any_dtype(cotangent: Any) -> None:
    def fun(x: Any) -> Any:
        return (x * 2).astype("int32")

    assert float(hloom.vjp(fun, 3.0)[1](cotangent)[0]) == 0
    assert float(hloom.vjp(lambda x: (x * 2, fun(x)), 3.0)[1]((1.0, cotangent))[0]) == 2
    assert float(hloom.jit(lambda x: hloom.vjp(lambda x: (x * 2, fun(x)), x)[1]((1.0, cotangent))[0])(3.0)) == 2
    assert hloom.vjp(lambda i: i * 2, jnp.asarray(3))[1](cotangent)[0].dtype == hloom.float0


def test_a_cotangent_of_an_integer_has_its_shape() -> None:
    with pytest.raises(ValueError, match=r"got int32\[3\], but expected float0\[\]"):
        hloom.vjp(lambda x: x.astype("int32"), 3.0)[1](np.zeros(3, np.int32))
    with pytest.raises(ValueError, match=r"got int32\[\], but expected float32\[\]"):
        hloom.vjp(jnp.sin, 3.0)[1](np.int32(1))


@pytest.mark.usefixtures("on_the_evaluator")
def test_a_custom_rule_keeps_the_x64_of_its_call() -> None:
    seen = []

    @hloom.custom_vjp
    def f(x: Any) -> Any:
        return x * 2

    def backward(residual: Any, cotangent: Any) -> tuple[Any]:
        seen.append((residual * cotangent).dtype)
        return (cotangent * 2 * residual,)

    f.defvjp(lambda x: (x * 2, x), backward)

    def loss(x: Any) -> Any:
        with hloom.enable_x64():
            return f(x.astype("float64")).astype("float32")

    x = jnp.asarray(np.float32(3))
    for gradient in (hloom.grad(loss), hloom.jit(hloom.grad(loss)), hloom.grad(hloom.jit(loss))):
        found = gradient(x)
        assert (found.dtype, float(found)) == (np.float32, 6)
    assert set(seen) == {np.dtype(np.float64)}
    assert not hloom.config.jax_enable_x64


@pytest.mark.parametrize("jitted", [False, True])
def test_relu_of_negative_zero_is_zero(jitted: bool) -> None:
    relu = hloom.jit(nn.relu) if jitted else nn.relu
    found = np.asarray(relu(jnp.asarray([-0.0, 0.0, -1.0, 2.0, np.nan, -np.inf, np.inf])))
    np.testing.assert_array_equal(found, [0, 0, 0, 2, np.nan, 0, np.inf])
    assert not np.signbit(found[:3]).any()


def test_any_number_is_a_condition() -> None:
    for condition in (jnp.uint8(3), np.uint8(3), 3, 0.5, jnp.asarray(2.5), jnp.int4(-1), 1j):
        assert int(jnp.where(condition, 1, 2)) == 1
        assert int(hloom.jit(lambda c: jnp.where(c, 1, 2))(condition)) == 1
    assert jnp.where(jnp.asarray([0, 2], "uint8"), 1, jnp.zeros(2)).tolist() == [0, 1]


def test_conversion_of_complex_numbers_to_booleans() -> None:
    """astype asks whether a number is 0; convert_element_type drops the imaginary part first, as always."""
    x = jnp.asarray([1j, 0, 1])
    assert x.astype(bool).tolist() == [True, False, True]
    assert lax.convert_element_type(x, bool).tolist() == [False, False, True]
