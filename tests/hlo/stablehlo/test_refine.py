"""Sizes `?` that follow from constants and from the arguments' shapes; programs for any size that JAX exports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo import Shape, evaluate, verify
from hloom.hlo.element_type import element_type_of
from hloom.hlo.errors import ShapeError, UnsupportedError
from hloom.hlo.stablehlo.text import read
from hloom.hlo.stablehlo.to_hlo import hlo_of

NDArray = np.ndarray[Any, Any]
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def run(text: str, *arguments: Any) -> list[NDArray]:
    """The results of a program for arguments of these shapes."""
    arrays = [np.asarray(a) for a in arguments]
    module = hlo_of(read(text), [Shape.array(element_type_of(a.dtype), a.shape) for a in arrays])
    verify(module)
    return evaluate(module, *arrays)


SUM_OF_ROWS = """
func.func @main(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %r = call @with(%n, %x) : (tensor<i32>, tensor<?x?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func private @twice(%n: tensor<i32>) -> tensor<i32> {
  %m = stablehlo.add %n, %n : tensor<i32>
  return %m : tensor<i32>
}
func.func private @with(%n: tensor<i32>, %x: tensor<?x?xf32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32>, tensor<f32>)
    -> tensor<?xf32>
  %m = call @twice(%n) : (tensor<i32>) -> tensor<i32>
  %v = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %i = stablehlo.dynamic_iota %v, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
  %low = stablehlo.constant dense<0> : tensor<1xi32>
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %w = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %h = stablehlo.real_dynamic_slice %i, %low, %w, %one
    : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  %r = stablehlo.add %s, %h : tensor<?xf32>
  return %r : tensor<?xf32>
}
"""


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_function_is_made_for_each_size(rows: int) -> None:
    (result,) = run(SUM_OF_ROWS, X[:rows])
    np.testing.assert_array_equal(result, X[:rows].sum(1) + np.arange(rows))


def test_sizes_are_refused_without_the_shapes_of_arguments() -> None:
    with pytest.raises(UnsupportedError, match=r"tensor<\?x\?xf32> has a size that is known only when"):
        hlo_of(read(SUM_OF_ROWS))


def test_operations_whose_sizes_are_operands() -> None:
    text = """
    func.func @main(%x: tensor<3x4xf32>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<2x3x4xf32>, tensor<?x?xf32>) {
      %low = stablehlo.constant dense<[1, 0]> : tensor<2xi64>
      %high = stablehlo.constant dense<[0, 2]> : tensor<2xi64>
      %inner = stablehlo.constant dense<[0, 1]> : tensor<2xi64>
      %value = stablehlo.constant dense<-1.0> : tensor<f32>
      %0 = stablehlo.dynamic_pad %x, %value, %low, %high, %inner
        : (tensor<3x4xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
      %flat = stablehlo.constant dense<12> : tensor<1xi32>
      %1 = stablehlo.dynamic_reshape %x, %flat : (tensor<3x4xf32>, tensor<1xi32>) -> tensor<?xf32>
      %many = stablehlo.constant dense<[2, 3, 4]> : tensor<3xi32>
      %2 = stablehlo.dynamic_broadcast_in_dim %x, %many, dims = [1, 2]
        : (tensor<3x4xf32>, tensor<3xi32>) -> tensor<2x3x4xf32>
      %sizes = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
      %at = stablehlo.constant dense<[[2, 1], [0, 2]]> : tensor<2x2xi64>
      %3 = "stablehlo.dynamic_gather"(%x, %at, %sizes) {
        dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1],
          index_vector_dim = 1>
      } : (tensor<3x4xf32>, tensor<2x2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
      return %0, %1, %2, %3 : tensor<?x?xf32>, tensor<?xf32>, tensor<2x3x4xf32>, tensor<?x?xf32>
    }"""
    padded = np.full((4, 9), -1, np.float32)
    padded[1:, :7:2] = X
    expected = (padded, X.ravel(), np.broadcast_to(X, (2, 3, 4)), np.stack([X[2, 1:3], X[0, 2:4]]))
    for result, wanted in zip(run(text, X), expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


ASSERTION = """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %m = stablehlo.remainder %n, %two : tensor<i32>
  %ok = stablehlo.compare EQ, %m, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%ok, %n) {api_version = 2 : i32, error_message = "{0} is odd",
    has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  return %x : tensor<?xf32>
}
"""


def test_a_shape_assertion_is_checked() -> None:
    assert run(ASSERTION, X[0])[0].shape == (4,)
    with pytest.raises(ShapeError, match="3 is odd"):
        run(ASSERTION, X[:, 0])


def test_a_slice_of_a_fixed_size_may_start_anywhere() -> None:
    text = """
    func.func @main(%x: tensor<?xf32>, %i: tensor<1xi32>) -> tensor<?xf32> {
      %size = stablehlo.constant dense<2> : tensor<1xi32>
      %one = stablehlo.constant dense<1> : tensor<1xi32>
      %end = stablehlo.add %i, %size : tensor<1xi32>
      %r = stablehlo.real_dynamic_slice %x, %i, %end, %one
        : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
      return %r : tensor<?xf32>
    }"""
    np.testing.assert_array_equal(run(text, X[1], np.array([1], np.int32))[0], X[1, 1:3])


def test_sizes_that_are_computed_from_data_are_refused() -> None:
    text = """
    func.func @main(%x: tensor<4xf32>, %n: tensor<1xi32>) -> tensor<?xf32> {
      %r = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
      return %r : tensor<?xf32>
    }"""
    with pytest.raises(UnsupportedError, match=r"dynamic_iota.*the sizes of the result must be constants"):
        run(text, X[0], np.array([1], np.int32))


# ---- JAX's programs for any size


def _floats(*shape: int) -> NDArray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


Program = tuple[Callable[[Any, Any], Callable[..., Any]], tuple[str, ...], list[NDArray]]
PROGRAMS: dict[str, Program] = {
    "mlp": (
        lambda jax, jnp: lambda x, w: jax.nn.relu(x @ w).sum(axis=1),
        ("b, 4", "4, 3"), [_floats(5, 4), _floats(4, 3)],
    ),
    "divisible": (lambda jax, jnp: lambda x: x.reshape(x.shape[0] // 2, 2).sum(1), ("2*b",), [_floats(6)]),
    "reversed": (lambda jax, jnp: lambda x: x[::-1, ::2], ("b, c",), [_floats(5, 7)]),
    "scan": (
        lambda jax, jnp: lambda x: jax.lax.scan(lambda c, v: (c + v, c * v), jnp.zeros(x.shape[1]), x),
        ("b, c",), [_floats(5, 3)],
    ),
    "pool": (
        lambda jax, jnp: lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2), (1, 2, 2), "SAME"),
        ("b, h, w",), [_floats(2, 6, 5)],
    ),
    "convolution": (
        lambda jax, jnp: lambda x, w: jax.lax.conv(x, w, (2, 2), "SAME"),
        ("b, 3, h, w", "4, 3, 3, 3"), [_floats(2, 3, 6, 5), _floats(4, 3, 3, 3)],
    ),
    "topk": (lambda jax, jnp: lambda x: jax.lax.top_k(x, 2), ("b, 7",), [_floats(5, 7)]),
    "random": (
        lambda jax, jnp: lambda k, x: x + jax.random.normal(k, x.shape),
        ("2", "b, c"), [np.array([0, 1], np.uint32), _floats(5, 3)],
    ),
    "cholesky": (
        lambda jax, jnp: lambda x: jnp.linalg.cholesky(x @ x.swapaxes(-1, -2) + 3 * jnp.eye(x.shape[-1])),
        ("b, n, n",), [_floats(2, 3, 3)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_for_any_size_that_jax_exports(name: str) -> None:
    jax = pytest.importorskip("jax")
    from jax import export

    make, sizes, arrays = PROGRAMS[name]
    f = make(jax, jax.numpy)
    scope = export.SymbolicScope()
    structs = [
        jax.ShapeDtypeStruct(export.symbolic_shape(size, scope=scope), a.dtype)
        for size, a in zip(sizes, arrays, strict=True)
    ]
    text = export.export(jax.jit(f))(*structs).mlir_module()
    expected = jax.tree.leaves(jax.jit(f)(*arrays))
    for result, wanted in zip(run(text, *arrays), expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=2e-5, atol=1e-5)
