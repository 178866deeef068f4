"""Operations of StableHLO and CHLO that HLO has in another form, against NumPy and SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from hloom.hlo import HloModule, evaluate, evaluate_on_devices, verify
from hloom.hlo.collectives import set_local_device_count
from hloom.hlo.errors import HloError, ShapeError, UnsupportedError
from hloom.hlo.stablehlo.from_hlo import stablehlo_of
from hloom.hlo.stablehlo.text import read, write
from hloom.hlo.stablehlo.to_hlo import hlo_of

import hloom

NDArray = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)
X, Y = (RNG.normal(size=(3, 4)).astype(np.float32) for _ in range(2))
V = np.array([0.5, 1.25, 2.75, 4.0], np.float32)
N = np.array([7, -3, 12, 5], np.int32)
Z = np.array([1 + 2j, -0.5 + 0.25j, 3 - 4j, 0 + 1j], np.complex64)


def function(arguments: list[tuple[str, str]], results: str, body: str) -> str:
    named = ", ".join(f"%{name}: {type_}" for name, type_ in arguments)
    return f"func.func @main({named}) -> ({results}) {{\n{body}\n}}"


def program(text: str) -> HloModule:
    module = hlo_of(read(text))
    verify(module)
    verify(hlo_of(stablehlo_of(module)))
    return module


Case = tuple[list[NDArray], str, str, Callable[..., Any]]


def type_of(array: NDArray) -> str:
    names = {"float32": "f32", "int32": "i32", "complex64": "complex<f32>", "bool": "i1"}
    return f"tensor<{''.join(f'{size}x' for size in array.shape)}{names[array.dtype.name]}>"


def _unary(op: str, x: NDArray, expected: Callable[..., Any], result: str = "") -> Case:
    result = result or type_of(x)
    return [x], result, f"%r = {op} %a : {type_of(x)} -> {result}\nreturn %r : {result}", expected


def _square(z: NDArray) -> NDArray:
    return (z.astype(np.complex128) ** 2).astype(z.dtype)


CASES: dict[str, Case] = {
    "while-captures": (
        [X, np.float32(2)], "tensor<3x4xf32>",
        """%zero = stablehlo.constant dense<0> : tensor<i32>
        %ten = stablehlo.constant dense<10> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %s = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
        %r:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<3x4xf32>
        cond {
          %c = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        } do {
          %n = stablehlo.add %i, %one : tensor<i32>
          %y = stablehlo.add %x, %s : tensor<3x4xf32>
          stablehlo.return %n, %y : tensor<i32>, tensor<3x4xf32>
        }
        return %r#1 : tensor<3x4xf32>""",
        lambda a, b: a + 10 * b,
    ),
    "if-in-while": (
        [np.int32(17)], "tensor<i32>",
        """%one = stablehlo.constant dense<1> : tensor<i32>
        %two = stablehlo.constant dense<2> : tensor<i32>
        %three = stablehlo.constant dense<3> : tensor<i32>
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %r:2 = stablehlo.while(%x = %a, %n = %zero) : tensor<i32>, tensor<i32>
        cond {
          %c = stablehlo.compare NE, %x, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        } do {
          %m = stablehlo.remainder %x, %two : tensor<i32>
          %even = stablehlo.compare EQ, %m, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
          %y = "stablehlo.if"(%even) ({
            %h = stablehlo.divide %x, %two : tensor<i32>
            stablehlo.return %h : tensor<i32>
          }, {
            %t = stablehlo.multiply %x, %three : tensor<i32>
            %u = stablehlo.add %t, %one : tensor<i32>
            stablehlo.return %u : tensor<i32>
          }) : (tensor<i1>) -> tensor<i32>
          %k = stablehlo.add %n, %one : tensor<i32>
          stablehlo.return %y, %k : tensor<i32>, tensor<i32>
        }
        return %r#1 : tensor<i32>""",
        lambda a: np.int32(12),
    ),
    **{
        f"case-{index}": (
            [np.int32(index), V, N], "tensor<4xf32>, tensor<4xi32>",
            """%r:2 = "stablehlo.case"(%a) ({
              %x = stablehlo.negate %b : tensor<4xf32>
              stablehlo.return %x, %c : tensor<4xf32>, tensor<4xi32>
            }, {
              %y = stablehlo.negate %c : tensor<4xi32>
              stablehlo.return %b, %y : tensor<4xf32>, tensor<4xi32>
            }) : (tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
            return %r#0, %r#1 : tensor<4xf32>, tensor<4xi32>""",
            lambda a, b, c: (-b, c) if a == 0 else (b, -c),
        )
        for index in (0, 1, 5, -1)
    },
    "reduce-with-a-constant-from-outside": (
        [X], "tensor<3xf32>",
        """%zero = stablehlo.constant dense<0.0> : tensor<f32>
        %two = stablehlo.constant dense<-2.0> : tensor<f32>
        %r = "stablehlo.reduce"(%a, %zero) ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %p = stablehlo.minimum %y, %two : tensor<f32>
          %q = stablehlo.minimum %x, %p : tensor<f32>
          stablehlo.return %q : tensor<f32>
        }) {dimensions = array<i64: 1>} : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
        return %r : tensor<3xf32>""",
        lambda a: np.minimum(a.min(1), -2),
    ),
    "reduce-in-a-wider-type": (
        [X], "tensor<4xf64>",
        """%zero = stablehlo.constant dense<0.0> : tensor<f32>
        %r = "stablehlo.reduce"(%a, %zero) ({
        ^bb0(%x: tensor<f64>, %y: tensor<f64>):
          %q = stablehlo.add %x, %y : tensor<f64>
          stablehlo.return %q : tensor<f64>
        }) {dimensions = array<i64: 0>} : (tensor<3x4xf32>, tensor<f32>) -> tensor<4xf64>
        return %r : tensor<4xf64>""",
        lambda a: a.astype(np.float64).sum(0),
    ),
    "sort-along-the-last": (
        [X], "tensor<3x4xf32>",
        """%r = "stablehlo.sort"(%a) ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %q = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %q : tensor<i1>
        }) : (tensor<3x4xf32>) -> tensor<3x4xf32>
        return %r : tensor<3x4xf32>""",
        lambda a: -np.sort(-a, axis=1),
    ),
    "broadcast-stretches": (
        [V[:, None]], "tensor<2x4x3xf32>",
        """%r = stablehlo.broadcast_in_dim %a, dims = [1, 2] : (tensor<4x1xf32>) -> tensor<2x4x3xf32>
        return %r : tensor<2x4x3xf32>""",
        lambda a: np.broadcast_to(a, (2, 4, 3)),
    ),
    "barrier-and-tuples": (
        [V, N], "tensor<4xi32>, tensor<4xf32>",
        """%r:2 = stablehlo.optimization_barrier %a, %b : tensor<4xf32>, tensor<4xi32>
        %t = stablehlo.tuple %r#0, %r#1 : tuple<tensor<4xf32>, tensor<4xi32>>
        %x = stablehlo.get_tuple_element %t[1] : (tuple<tensor<4xf32>, tensor<4xi32>>) -> tensor<4xi32>
        %y = stablehlo.get_tuple_element %t[0] : (tuple<tensor<4xf32>, tensor<4xi32>>) -> tensor<4xf32>
        return %x, %y : tensor<4xi32>, tensor<4xf32>""",
        lambda a, b: (b, a),
    ),
    "top-k-as-a-composite": (
        [V], "tensor<2xf32>, tensor<2xi32>",
        """%r:2 = stablehlo.composite "chlo.top_k" %a {composite_attributes = {k = 2 : i64}, decomposition = @none}
          : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
        return %r#0, %r#1 : tensor<2xf32>, tensor<2xi32>""",
        lambda a: (a[[3, 2]], np.array([3, 2], np.int32)),
    ),
    "top-k-of-mhlo": (
        [V], "tensor<2xf32>, tensor<2xi32>",
        """%r:2 = stablehlo.custom_call @mhlo.topk(%a) {mhlo.attributes = {k = 2 : i64, largest = false}}
          : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
        return %r#0, %r#1 : tensor<2xf32>, tensor<2xi32>""",
        lambda a: (a[[0, 1]], np.array([0, 1], np.int32)),
    ),
    "erf-of-mhlo": (
        [V], "tensor<4xf32>",
        """%r = stablehlo.custom_call @mhlo.erf(%a) {mhlo.attributes = {}, mhlo.version = 1 : i64}
          : (tensor<4xf32>) -> tensor<4xf32>
        return %r : tensor<4xf32>""",
        scipy.special.erf,
    ),
    # ---- operations of older versions
    "broadcast": (
        [V], "tensor<2x3x4xf32>",
        """%r = "stablehlo.broadcast"(%a) {broadcast_sizes = array<i64: 2, 3>} : (tensor<4xf32>) -> tensor<2x3x4xf32>
        return %r : tensor<2x3x4xf32>""",
        lambda a: np.broadcast_to(a, (2, 3, 4)),
    ),
    "dot": (
        [X, V], "tensor<3xf32>",
        """%r = "stablehlo.dot"(%a, %b) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3xf32>
        return %r : tensor<3xf32>""",
        lambda a, b: a @ b,
    ),
    "einsum": (
        [X, Y], "tensor<4xf32>",
        """%r = "stablehlo.einsum"(%a, %b) {einsum_config = "ij,kj->j"} : (tensor<3x4xf32>, tensor<3x4xf32>)
          -> tensor<4xf32>
        return %r : tensor<4xf32>""",
        lambda a, b: np.einsum("ij,kj->j", a, b),
    ),
    "unary-einsum": (
        [X], "tensor<4xf32>",
        """%r = "stablehlo.unary_einsum"(%a) {einsum_config = "ij->j"} : (tensor<3x4xf32>) -> tensor<4xf32>
        return %r : tensor<4xf32>""",
        lambda a: a.sum(0),
    ),
    "torch-index-select": (
        [X, np.array([2, 0], np.int32)], "tensor<2x4xf32>",
        """%r = "stablehlo.torch_index_select"(%a, %b) {dim = 0 : i64, batch_dims = 0 : i64}
          : (tensor<3x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>
        return %r : tensor<2x4xf32>""",
        lambda a, b: a[b],
    ),
    "torch-index-select-in-batches": (
        [X, np.array([[3, 0], [1, 1], [2, 0]], np.int32)], "tensor<3x2xf32>",
        """%r = "stablehlo.torch_index_select"(%a, %b) {dim = 1 : i64, batch_dims = 1 : i64}
          : (tensor<3x4xf32>, tensor<3x2xi32>) -> tensor<3x2xf32>
        return %r : tensor<3x2xf32>""",
        lambda a, b: np.take_along_axis(a, b, 1),
    ),
    # ---- types for which HLO has another meaning
    "maximum-of-complex": (
        [Z, Z[::-1].copy()], "tensor<4xcomplex<f32>>",
        "%r = stablehlo.maximum %a, %b : tensor<4xcomplex<f32>>\nreturn %r : tensor<4xcomplex<f32>>", np.maximum,
    ),
    "bits-of-complex": (
        [Z.astype(np.complex64)], "tensor<4x64xi1>",
        """%r = stablehlo.bitcast_convert %a : (tensor<4xcomplex<f32>>) -> tensor<4x64xi1>
        return %r : tensor<4x64xi1>""",
        lambda a: np.unpackbits(a.view(np.uint8).reshape(4, 8), axis=1, bitorder="little").astype(bool),
    ),
    "complex-of-bits": (
        [np.unpackbits(V.view(np.uint8), bitorder="little").astype(bool).reshape(2, 64)], "tensor<2xcomplex<f32>>",
        """%r = stablehlo.bitcast_convert %a : (tensor<2x64xi1>) -> tensor<2xcomplex<f32>>
        return %r : tensor<2xcomplex<f32>>""",
        lambda a: V.view(np.complex64),
    ),
    "complex-is-true-by-its-real-part": (
        [Z], "tensor<4xi1>",
        "%r = stablehlo.convert %a : (tensor<4xcomplex<f32>>) -> tensor<4xi1>\nreturn %r : tensor<4xi1>",
        lambda a: a.real != 0,
    ),
    # ---- quantized numbers
    "quantize": (
        [V], "tensor<4xi8>",
        """%q = stablehlo.uniform_quantize %a : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8<-8:7>:f32, 0.5:1>>
        %r = stablehlo.bitcast_convert %q : (tensor<4x!quant.uniform<i8<-8:7>:f32, 0.5:1>>) -> tensor<4xi8>
        return %r : tensor<4xi8>""",
        lambda a: np.clip(np.round(a / 0.5 + 1), -8, 7).astype(np.int8),
    ),
    "quantized-along-an-axis": (
        [X], "tensor<3x4xf32>",
        """%q = stablehlo.uniform_quantize %a
          : (tensor<3x4xf32>) -> tensor<3x4x!quant.uniform<u8:f32:0, {0.5:128, 0.25:100, 1.0}>>
        %r = stablehlo.uniform_dequantize %q
          : (tensor<3x4x!quant.uniform<u8:f32:0, {0.5:128, 0.25:100, 1.0}>>) -> tensor<3x4xf32>
        return %r : tensor<3x4xf32>""",
        lambda a: np.stack([np.round(a[0] * 2) / 2, np.round(a[1] * 4) / 4, np.clip(np.round(a[2]), 0, 255)]),
    ),
    "product-of-quantized": (
        [V, V[::-1].copy()], "tensor<f32>",
        """%q = stablehlo.uniform_quantize %a : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.25>>
        %t = stablehlo.reverse %q, dims = [0] : tensor<4x!quant.uniform<i8:f32, 0.25>>
        %s = stablehlo.dot_general %q, %t, contracting_dims = [0] x [0]
          : (tensor<4x!quant.uniform<i8:f32, 0.25>>, tensor<4x!quant.uniform<i8:f32, 0.25>>)
          -> tensor<!quant.uniform<i32:f32, 0.0625>>
        %r = stablehlo.uniform_dequantize %s : (tensor<!quant.uniform<i32:f32, 0.0625>>) -> tensor<f32>
        return %r : tensor<f32>""",
        lambda a, b: a @ b,
    ),
    # ---- CHLO
    "broadcast-add": (
        [X, V], "tensor<3x4xf32>",
        "%r = chlo.broadcast_add %a, %b : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>\n"
        "return %r : tensor<3x4xf32>", np.add,
    ),
    "broadcast-compare": (
        [X[:, :1].copy(), V], "tensor<3x4xi1>",
        """%r = chlo.broadcast_compare %a, %b {comparison_direction = #chlo<comparison_direction LT>}
          : (tensor<3x1xf32>, tensor<4xf32>) -> tensor<3x4xi1>
        return %r : tensor<3x4xi1>""", np.less,
    ),
    "broadcast-along": (
        [X, V[:3].copy()], "tensor<3x4xf32>",
        """%r = chlo.broadcast_subtract %a, %b {broadcast_dimensions = array<i64: 0>}
          : (tensor<3x4xf32>, tensor<3xf32>) -> tensor<3x4xf32>
        return %r : tensor<3x4xf32>""", lambda a, b: a - b[:, None],
    ),
    "broadcast-zeta": (
        [V + 1, np.float32(2)], "tensor<4xf32>",
        "%r = chlo.broadcast_zeta %a, %b : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>\nreturn %r : tensor<4xf32>",
        scipy.special.zeta,
    ),
    "constant-like": (
        [X], "tensor<3x4xf32>",
        """%r = "chlo.constant_like"(%a) {value = 1.5 : f32} : (tensor<3x4xf32>) -> tensor<3x4xf32>
        return %r : tensor<3x4xf32>""", lambda a: np.full_like(a, 1.5),
    ),
    "next-after": (
        [V, np.zeros_like(V)], "tensor<4xf32>",
        "%r = chlo.next_after %a, %b : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>\nreturn %r : tensor<4xf32>",
        np.nextafter,
    ),
    "polygamma": (
        [np.array([0, 1, 2, 3], np.float32), V], "tensor<4xf32>",
        "%r = chlo.polygamma %a, %b : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>\nreturn %r : tensor<4xf32>",
        lambda a, b: scipy.special.polygamma(a.astype(int), b).astype(np.float32),
    ),
    "scan": (
        [X], "tensor<3x4xf32>, tensor<3xf32>",
        """%zero = stablehlo.constant dense<0.0> : tensor<3xf32>
        %r:2 = chlo.scan(%a) inits(%zero) dimension=1 {
        ^bb0(%x: tensor<3xf32>, %c: tensor<3xf32>):
          %s = stablehlo.add %x, %c : tensor<3xf32>
          stablehlo.return %s, %s : tensor<3xf32>, tensor<3xf32>
        } : (tensor<3x4xf32>, tensor<3xf32>) -> (tensor<3x4xf32>, tensor<3xf32>)
        return %r#0, %r#1 : tensor<3x4xf32>, tensor<3xf32>""",
        lambda a: (np.cumsum(a, 1), a.sum(1)),
    ),
    "acosh": _unary("chlo.acosh", V + 1, np.arccosh),
    "asin-of-complex": _unary("chlo.asin", Z, np.arcsin),
    "atan": _unary("chlo.atan", V, np.arctan),
    "bessel-i1e": _unary("chlo.bessel_i1e", V, scipy.special.i1e),
    "conj": _unary("chlo.conj", Z, np.conj),
    "digamma": _unary("chlo.digamma", V, scipy.special.digamma),
    "erf": _unary("chlo.erf", V, scipy.special.erf),
    "erfc": _unary("chlo.erfc", V, scipy.special.erfc),
    "erf-inv": _unary("chlo.erf_inv", V / 5, scipy.special.erfinv),
    "is-inf": _unary("chlo.is_inf", np.array([1, math.inf, -math.inf, math.nan], np.float32), np.isinf, "tensor<4xi1>"),
    "is-neg-inf": _unary("chlo.is_neg_inf", np.array([1, -math.inf], np.float32), np.isneginf, "tensor<2xi1>"),
    "is-pos-inf": _unary("chlo.is_pos_inf", np.array([-math.inf, math.inf], np.float32), np.isposinf, "tensor<2xi1>"),
    "lgamma": _unary("chlo.lgamma", V, scipy.special.gammaln),
    "sinh": _unary("chlo.sinh", V, np.sinh),
    "square": _unary("chlo.square", V, np.square),
    "square-of-complex": _unary("chlo.square", Z, _square),
    "tan": _unary("chlo.tan", V, np.tan),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_operations(name: str) -> None:
    inputs, results, body, expected = CASES[name]
    arguments = [(letter, type_of(np.asarray(x))) for letter, x in zip("abc", inputs)]
    module = program(function(arguments, results, body))
    found = expected(*inputs)
    wanted = found if isinstance(found, tuple) else (found,)
    got = evaluate(module, *inputs)
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted, strict=True):
        assert g.shape == np.shape(w)
        np.testing.assert_allclose(g, w, rtol=2e-6, atol=1e-6)


# ---- several devices


def run(text: str, arrays: list[NDArray]) -> list[NDArray]:
    set_local_device_count(8)
    head = f"module attributes {{mhlo.num_replicas = {len(arrays)} : i32}} {{\n"
    return [results[0] for results in evaluate_on_devices(program(f"{head}{text}\n}}"), [[a] for a in arrays])]


def test_all_to_all_that_joins_along_another_dimension() -> None:
    text = function([("a", "tensor<2x4xi64>")], "tensor<4x2xi64>", """
        %r = "stablehlo.all_to_all"(%a) {split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64,
          replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2x4xi64>) -> tensor<4x2xi64>
        return %r : tensor<4x2xi64>""")
    x, y = np.arange(8).reshape(2, 4), np.arange(8, 16).reshape(2, 4)
    first, second = run(text, [x, y])
    np.testing.assert_array_equal(first, np.concatenate([x[:, :2], y[:, :2]]))
    np.testing.assert_array_equal(second, np.concatenate([x[:, 2:], y[:, 2:]]))


def test_collective_reduce_leaves_the_sum_to_the_root() -> None:
    text = function([("a", "tensor<2xi64>")], "tensor<2xi64>", """
        %r = "stablehlo.collective_reduce"(%a) ({
        ^bb0(%x: tensor<i64>, %y: tensor<i64>):
          %s = stablehlo.add %x, %y : tensor<i64>
          stablehlo.return %s : tensor<i64>
        }) {replica_groups = dense<[[1, 0], [2, 3]]> : tensor<2x2xi64>} : (tensor<2xi64>) -> tensor<2xi64>
        return %r : tensor<2xi64>""")
    results = run(text, [np.array([k, 10 * k]) for k in range(4)])
    assert [r.tolist() for r in results] == [[0, 0], [1, 10], [5, 50], [0, 0]]


def test_cross_replica_sum() -> None:
    text = function([("a", "tensor<2xf32>")], "tensor<2xf32>", """
        %r = "stablehlo.cross-replica-sum"(%a) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
          : (tensor<2xf32>) -> tensor<2xf32>
        return %r : tensor<2xf32>""")
    for result in run(text, [np.float32([1, 2]), np.float32([10, 20])]):
        np.testing.assert_array_equal(result, [11, 22])


SHARDED = """
module @m attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
      %b: tensor<4x6xf32> {mhlo.sharding = "{replicated}"})
      -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {"y"}]> : tensor<8x6xf32>
    %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
        manual_axes={"x", "y"} (%c: tensor<4x6xf32>) {
      %3 = stablehlo.add %c, %c : tensor<4x6xf32>
      sdy.return %3 : tensor<4x6xf32>
    } : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %2 : tensor<8x6xf32>
  }
}
"""


def test_shardings_along_the_axes_of_a_mesh() -> None:
    set_local_device_count(8)
    a, b = np.arange(32, dtype=np.float32).reshape(8, 4), np.ones((4, 6), np.float32)
    module = program(SHARDED)
    texts = {
        dict(i.annotations)["sharding"] for i in module.entry.instructions if "sharding" in dict(i.annotations)
    }  # fmt: skip
    assert texts == {
        "{devices=[2,1,2]<=[4] last_tile_dim_replicate}", "{replicated}", "{devices=[2,2]<=[4]}",
        "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
    }  # fmt: skip
    again = hlo_of(read(write(stablehlo_of(module))))
    for each in (module, again):
        np.testing.assert_array_equal(hloom.run_hlo(each, a, b)[0], 2 * (a @ b))
    for name in ("sdy.mesh @mesh", "sdy.sharding_constraint", 'sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>'):
        assert name in write(stablehlo_of(module))


# ---- programs that are refused

REFUSED: dict[str, tuple[str, type[HloError], str]] = {
    "unknown": ('"stablehlo.nothing"() : () -> ()\nreturn', UnsupportedError, "the operation stablehlo.nothing"),
    "size": (
        "%r = stablehlo.negate %a : tensor<?xf32>\nreturn",
        UnsupportedError, r"the type tensor<\?xf32> has a size that",
    ),
    "rule": (
        "%r = stablehlo.concatenate %b, %b, dim = 3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>\nreturn",
        ShapeError, r"stablehlo.concatenate \(tensor<4xf32>, tensor<4xf32>\).*concatenate_c3",
    ),
    "function": ("func.call @f() : () -> ()\nreturn", UnsupportedError, "there is no function @f"),
    "captured": (
        """%s = stablehlo.slice %b [0:1] : (tensor<4xf32>) -> tensor<1xf32>
        %t = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<f32>
        %r = "stablehlo.map"(%b) ({
        ^bb0(%x: tensor<f32>):
          %y = stablehlo.add %x, %t : tensor<f32>
          stablehlo.return %y : tensor<f32>
        }) {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
        return""",
        UnsupportedError, "uses a value from outside of it",
    ),
    "quantized": (
        '%q = "stablehlo.uniform_quantize"(%b) : (tensor<4xf32>) -> tensor<4x!quant.any<i8>>\nreturn',
        UnsupportedError, "quant.any",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_programs_that_are_refused(name: str) -> None:
    body, error, message = REFUSED[name]
    first = "tensor<?xf32>" if name == "size" else "tensor<3x4xf32>"
    text = function([("a", first), ("b", "tensor<4xf32>")], "", body)
    with pytest.raises(error, match=message):
        hlo_of(read(text))


@pytest.mark.parametrize(("count", "message"), [(1, "calls itself"), (500, "call one another more than 100 deep")])
def test_functions_that_never_end_or_are_too_deep(count: int, message: str) -> None:
    functions = [
        f"func.func private @f{k}() {{\ncall @f{(k + 1) % count}() : () -> ()\nreturn\n}}" for k in range(count)
    ]  # fmt: skip
    with pytest.raises(UnsupportedError, match=message):
        hlo_of(read(function([], "", "call @f0() : () -> ()\nreturn") + "\n" + "\n".join(functions)))


def test_an_error_has_its_operation() -> None:
    text = function([("a", "tensor<4xf32>")], "", '"stablehlo.nothing"(%a) : (tensor<4xf32>) -> ()\nreturn')
    with pytest.raises(UnsupportedError) as found:
        hlo_of(read(text))
    operation = found.value.operation
    assert operation.name == "stablehlo.nothing" and text[operation.position :].startswith('"stablehlo.nothing"')
