"""MLIR text: attributes, types, literals, locations, modules and functions; and the messages for what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo import ElementType, HloParseError, UnsupportedError
from hloom.hlo.mlir.tree import (
    Dense,
    DenseArray,
    Enumerated,
    Float,
    Function,
    IndexType,
    Integer,
    Location,
    Opaque,
    Operation,
    OtherType,
    Quantized,
    Record,
    Symbol,
    Tensor,
    Token,
    Tuple,
    TypeAttribute,
    Unit,
)
from hloom.hlo.stablehlo.text import read, write

DATA = Path(__file__).parents[2] / "data" / "mlir"
S64, F32, F64 = ElementType.S64, ElementType.F32, ElementType.F64


def attribute(text: str, before: str = "") -> Any:
    """The attribute that is written so."""
    (operation,) = read(f'{before}"a.b"() {{k = {text}}} : () -> ()').regions[0].block.operations
    return operation.attributes["k"]


def printed(text: str) -> str:
    """The attribute that is written so, as it is printed."""
    operation = Operation("a.b", attributes={"k": attribute(text)})
    return write(operation).removeprefix('"a.b"() {k = ').removesuffix("} : () -> ()\n")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("[unit]", (Unit(),)),
        ("3", Integer(3, S64)),
        ("-3 : i32", Integer(-3, ElementType.S32)),
        ("0xFF : ui8", Integer(255, ElementType.U8)),
        ("7 : index", Integer(7, IndexType())),
        ("1.5", Float(0x3FF8000000000000, F64)),
        ("-2.5e-1 : f32", Float(0xBE800000, F32)),
        ("0x7FC00001 : f32", Float(0x7FC00001, F32)),
        ('"a\\22\\\\\\n\\C3\\A9"', 'a"\\\n\u00e9'),
        ("@f", Symbol(("f",))),
        ('@"odd name"::@g', Symbol(("odd name", "g"))),
        ("[1, true, []]", (Integer(1, S64), True, ())),
        ('{a, "b c" = 1 : i32}', {"a": Unit(), "b c": Integer(1, ElementType.S32)}),
        ("array<i64: 1, -2>", DenseArray(S64, (1, -2))),
        ("array<i1: true, false>", DenseArray(ElementType.PRED, (True, False))),
        ("array<f32: 1.5>", DenseArray(F32, (1.5,))),
        ("array<i32>", DenseArray(ElementType.S32, ())),
        ("#stablehlo<precision HIGH>", Enumerated("stablehlo", "precision", "HIGH")),
        (
            "#stablehlo.gather<offset_dims = [], index_vector_dim = 1, start_index_map = [0]>",
            Record("stablehlo", "gather", {"index_vector_dim": 1, "start_index_map": (0,)}),
        ),
        ("#sdy.sharding<@mesh, [{\"x\"}, {}]>", Opaque("sdy", '#sdy.sharding<@mesh, [{"x"}, {}]>')),
        ("#sdy<manual_axes{\"x\"}>", Opaque("sdy", '#sdy<manual_axes{"x"}>')),
        ("affine_map<(d0) -> (d0)>", Opaque("builtin", "affine_map<(d0) -> (d0)>")),
        ("tensor<2x?xbf16>", TypeAttribute(Tensor((2, -1), ElementType.BF16))),
        ("tensor<i1>", TypeAttribute(Tensor((), ElementType.PRED))),
        ("tensor<1xcomplex<f64>>", TypeAttribute(Tensor((1,), ElementType.C128))),
        ("tensor<1xf8E4M3B11FNUZ>", TypeAttribute(Tensor((1,), ElementType.F8E4M3B11FNUZ))),
        ("tensor<1xui2>", TypeAttribute(Tensor((1,), ElementType.U2))),
        ("tensor<3xindex>", TypeAttribute(Tensor((3,), IndexType()))),
        (
            "tensor<?xf32, #stablehlo.bounds<?>>",
            TypeAttribute(Tensor((-1,), F32, Record("stablehlo", "bounds", {"bounds": (-1,)}))),
        ),
        (
            "tensor<?xf32, #stablehlo.type_extensions<bounds = [4]>>",
            TypeAttribute(Tensor((-1,), F32, Record("stablehlo", "bounds", {"bounds": (4,)}))),
        ),
        ('tensor<2xf32, #s.e<(d0) -> "x">>', TypeAttribute(Tensor((2,), F32, Opaque("s", '#s.e<(d0) -> "x">')))),
        ("!stablehlo.token", TypeAttribute(Token())),
        ("tuple<tensor<f32>, tuple<>>", TypeAttribute(Tuple((Tensor((), F32), Tuple(()))))),
        ("(f32) -> ()", TypeAttribute(Function((F32,), ()))),
        ("() -> (f32, i64)", TypeAttribute(Function((), (F32, S64)))),
        ("memref<2x3xf32, 1>", TypeAttribute(OtherType("memref<2x3xf32, 1>"))),
        ("!stablehlo.future<tensor<f32>>", TypeAttribute(OtherType("!stablehlo.future<tensor<f32>>"))),
        (
            "tensor<2x!quant.uniform<i8:f32:0, {0.1:-30,0.5:-20}>>",
            TypeAttribute(
                Tensor((2,), Quantized("!quant.uniform<i8:f32:0, {1.000000e-01:-30,5.000000e-01:-20}>"))
            ),
        ),
        (
            "tensor<2x!quant.uniform<i8<-127:127>:f32, 2.0>, #s.e>",
            TypeAttribute(
                Tensor((2,), Quantized("!quant.uniform<i8<-127:127>:f32, 2.000000e+00>"), Opaque("s", "#s.e"))
            ),
        ),
    ],
)
def test_attributes(text: str, value: Any) -> None:
    assert attribute(text) == value
    assert attribute(printed(text)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dense<1> : tensor<2x3xi32>", np.ones((2, 3), np.int32)),
        ("dense<[[1, -2], [0x10, 4]]> : tensor<2x2xi64>", np.int64([[1, -2], [16, 4]])),
        ("dense<[true, false]> : tensor<2xi1>", np.array([True, False])),
        ("dense<[-8, 7]> : tensor<2xi4>", np.array([-8, 7], ml_dtypes.int4)),
        ("dense<[0, 3]> : tensor<2xui2>", np.array([0, 3], ml_dtypes.uint2)),
        ("dense<0x7F800000> : tensor<f32>", np.float32(np.inf)),
        ("dense<[1.5, 0xFFC00000]> : tensor<2xf32>", np.uint32([0x3FC00000, 0xFFC00000]).view(np.float32)),
        ("dense<[1.0, -0.0]> : tensor<2xf8E5M2>", np.array([1, -0.0], ml_dtypes.float8_e5m2)),
        ("dense<[0.5, 6.0]> : tensor<2xf4E2M1FN>", np.array([0.5, 6], ml_dtypes.float4_e2m1fn)),
        ("dense<[0.0, 4.0]> : tensor<2xf8E8M0FNU>", np.uint8([0, 129]).view(ml_dtypes.float8_e8m0fnu)),
        ("dense<(1.0, -2.5)> : tensor<complex<f32>>", np.complex64(1 - 2.5j)),
        ("dense<[(1.0, 2.0), (3.0, 0x0)]> : tensor<2xcomplex<f64>>", np.complex128([1 + 2j, 3])),
        ("dense<> : tensor<0x4xf32>", np.zeros((0, 4), np.float32)),
        ("dense<[[], []]> : tensor<2x0xf32>", np.zeros((2, 0), np.float32)),
        ('dense<"0x0000803F00000040"> : tensor<2xf32>', np.float32([1, 2])),
        ('dense<"0x00010F0E"> : tensor<4xi4>', np.array([0, 1, -1, -2], ml_dtypes.int4)),
        ('dense<"0x0001"> : tensor<2xi1>', np.array([False, True])),
        ('dense<"0x05"> : tensor<3xi1>', np.array([True, False, True])),
        ("dense<[0, 1]> : tensor<2xindex>", np.int64([0, 1])),
        ("sparse<[[0, 0], [1, 2]], [1, 5]> : tensor<2x3xi32>", np.int32([[1, 0, 0], [0, 0, 5]])),
        ("sparse<[[1, 0]], 2.5> : tensor<2x1xf32>", np.float32([[0], [2.5]])),
        ("sparse<[0, 2], [7, 8]> : tensor<3xi8>", np.int8([7, 0, 8])),
        ("sparse<0, [true]> : tensor<2x2xi1>", np.array([[True, False], [False, False]])),
        ("sparse<> : tensor<2xf64>", np.zeros(2)),
        ("sparse<[[1]], [(1.0, -2.0)]> : tensor<2xcomplex<f32>>", np.complex64([0, 1 - 2j])),
        ("sparse<[[0], [0]], // a remark, and a comma\n [1, 2]> : tensor<2xi8>", np.int8([1, 0])),
        ("dense<[1, // a remark\n 2]> : tensor<2xi8>", np.int8([1, 2])),
    ],
)
def test_literals(text: str, value: np.ndarray[Any, Any]) -> None:
    for written in (text, printed(text)):
        found = attribute(written)
        assert isinstance(found, Dense) and found.array.dtype == value.dtype and found.array.shape == value.shape
        assert found.array.tobytes() == value.tobytes()
        assert found.is_splat == (value.size > 1 and "[" not in written and '"' not in written) or value.ndim == 0


def test_a_literal_in_the_resources_of_a_file() -> None:
    after = '\n{-#\n  dialect_resources: {\n    builtin: {\n      w: "0x040000000000803F00000040"\n    }\n  }\n#-}\n'
    text = f'"a.b"() {{k = dense_resource<w> : tensor<2xf32>}} : () -> (){after}'
    value = read(text).regions[0].block.operations[0].attributes["k"]
    assert isinstance(value, Dense) and value.array.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("loc(unknown)", Location()),
        ('loc("f.py":3:4)', Location("", "f.py", 3, 4)),
        ('loc("f.py":3:4 to :5)', Location("", "f.py", 3, 4)),
        ('loc("name")', Location("name")),
        ('loc("outer"("inner"("f.py":3:4)))', Location("outer", "f.py", 3, 4)),
        ('loc(callsite("f.py":3:4 at "g.py":5:6))', Location("", "f.py", 3, 4)),
        ('loc(fused["x", "f.py":3:4])', Location("x", "f.py", 3, 4)),
        ('loc(fused<"meta">["x"])', Location("x")),
        ("loc(#loc1)", Location("n", "f.py", 1, 2)),
    ],
)
def test_locations(text: str, location: Location) -> None:
    module = read(f'"a.b"() : () -> () {text}\n#loc1 = loc("n"(#loc2))\n#loc2 = loc("f.py":1:2)')
    assert module.regions[0].block.operations[0].location == location
    again = read(write(module, locations=True))
    assert again.regions[0].block.operations[0].location == location


def test_a_location_may_have_hundreds_of_callers() -> None:
    lines = ['#loc0 = loc("f.py":1:2)', *(f"#loc{k} = loc(callsite(#loc0 at #loc{k - 1}))" for k in range(1, 500))]
    module = read('"a.b"() : () -> () loc("n"(#loc499))\n' + "\n".join(lines))
    assert module.regions[0].block.operations[0].location == Location("n", "f.py", 1, 2)


def test_a_whole_program_is_printed_as_mlir_prints_it() -> None:
    text = (DATA / "program.mlir").read_text()
    expected = (DATA / "program.printed.mlir").read_text()
    assert write(read(text)) == expected
    assert write(read(expected)) == expected
    assert write(read(write(read(text), generic=True))) == expected


def test_the_printed_program_is_that_of_mlir() -> None:
    mlir = pytest.importorskip("jax._src.interpreters.mlir")
    ir = pytest.importorskip("jaxlib.mlir.ir")
    with mlir.make_ir_context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        printed = str(ir.Module.parse((DATA / "program.mlir").read_text()))
    assert write(read(printed)) == printed


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("module {", (1, 9), "expected '}' or an operation, found the end of the text"),
        ('"a.b"(%x) : () -> ()', (1, 7), "the value %x is not defined before this use"),
        ('%x = "a.b"() : () -> ()', (1, 6), "a.b has 0 results, but 1 are named"),
        ('"a.b"() : () -> i32\n  @', (2, 3), "expected an operation such as stablehlo.add, found '@'"),
        ('%x = "a.b"() : () -> i32\n%x = "a.b"() : () -> i32', (2, 1), "the value %x is defined twice"),
        ('%x = "a.b"() : () -> i32\n"a.b"(%x) : (i64) -> ()', (2, 13), "the type i64 is not that of the operand, i32"),
        ('"a.b"() {k = 1, k = 2} : () -> ()', (1, 17), "the attribute k is given twice"),
        ('"a.b"() {k = "x\\q"} : () -> ()', (1, 14), "this string has a backslash that starts no escape sequence"),
        ('"a.b"() {k = "x} : () -> ()', (1, 14), "expected '\"' at the end of this string"),
        ('"a.b"() {k = 300 : i8} : () -> ()', (1, 14), "300 does not fit in its type"),
        ('"a.b"() {k = dense<[1, 2]> : tensor<3xi32>} : () -> ()', (1, 14), "the literal has 2 elements, its type 3"),
        (
            '"a.b"() {k = dense<[1, 2, 3]> : tensor<3x1xi32>} : () -> ()', (1, 14),
            "the brackets of the literal do not match the sizes [3, 1] of its type",
        ),
        (
            '"a.b"() {k = dense<1> : tensor<f32>} : () -> ()', (1, 14),
            "expected a float such as 1.0 in the literal, found '1'",
        ),
        ('"a.b"() {k = dense<1.0e60> : tensor<f32>} : () -> ()', (1, 14), "1.0e60 does not fit in f32"),
        ('"a.b"() {k = #nowhere} : () -> ()', (1, 14), "the attribute alias #nowhere is not defined"),
        ('"a.b"() {k = tensor<2x>} : () -> ()', (1, 14), "expected tensor<SIZExSIZExTYPE>"),
        (
            '"a.b"() {k = #stablehlo.gather<offset = [1]>} : () -> ()', (1, 32),
            "expected one of offset_dims, collapsed_slice_dims, operand_batching_dims, start_indices_batching_dims, "
            "start_index_map, index_vector_dim, found 'offset'",
        ),
        ("func.func @f(f32) {\n}", (1, 19), "a function with a body needs a name for each argument"),
        ("func.func @f(%x: f32) {\n  ^b: return }", (2, 3), "expected an operation, found '^b'"),
        (
            "func.func @f(%x: tensor<2xf32>) {\n  %0 = stablehlo.slice %x [0:1:] : (tensor<2xf32>) -> tensor<1xf32>",
            (2, 32), "expected the stride of a range, found ']'",
        ),
    ],
)  # fmt: skip
def test_messages_have_places(text: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(HloParseError) as caught:
        read(text, "model.mlir")
    error = caught.value
    assert error.message == message
    assert (error.file, error.line, error.column) == ("model.mlir", *place)
    assert str(error).startswith(f"model.mlir:{place[0]}:{place[1]}: {message}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"a.b"() {k = tensor<2xf6E3M2FN>} : () -> ()', "1:14: a tensor with elements of type f6E3M2FN"),
        ('"a.b"() {k = tensor<2xi7>} : () -> ()', "1:14: a tensor with elements of type i7"),
        ('"a.b"() {k = tensor<*xf32>} : () -> ()', "1:14: a tensor of unknown rank"),
        ('"a.b"()[^bb1] : () -> ()', "1:8: a jump to another block"),
        ('\n  arith.addi %x, %y : i32', "2:3: the operation arith.addi in this form"),
        (
            '"a.b"() {k = dense<1> : tensor<2x!quant.uniform<i8:f32, 0.5>>} : () -> ()',
            "1:14: a literal of the type !quant.uniform<i8:f32, 5.000000e-01>",
        ),
    ],
)
def test_what_is_not_supported_has_a_place(text: str, message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        read(text)
    assert str(caught.value).startswith(f"<mlir>:{message}")


BOUNDED = "tensor<?x2xf32, #stablehlo.bounds<4, ?>>"


@pytest.mark.parametrize(
    "text",
    [
        "%0 = stablehlo.reduce(%x init: %s) applies stablehlo.add across dimensions = [0] : "
        f"({BOUNDED}, tensor<f32>) -> tensor<2xf32>",
        "stablehlo.while() attributes {k}\n    cond {\n      stablehlo.return %k : tensor<i1>\n    } do {\n      "
        "stablehlo.return \n    }",
        "stablehlo.optimization_barrier()",
        "%0 = stablehlo.tuple  : tuple<>",
        f"%0 = stablehlo.reduce(%x init: %s) across dimensions = [0] {{k}} : ({BOUNDED}, tensor<f32>) -> "
        "tensor<2xf32>\n     reducer(%a: tensor<f32>, %b: tensor<f32>)  {\n      "
        "stablehlo.return %a : tensor<f32>\n    }",
        "%0 = stablehlo.exponential %s {result_accuracy = #stablehlo.result_accuracy<ulps = 2, mode = "
        "#stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<f32>",
        "%0 = stablehlo.reduce_precision %s, format = e5m2 : (tensor<f32>) -> tensor<f32, #s.e>",
        "%0 = stablehlo.select %k, %s, %t : (tensor<i1>, tensor<f32>, tensor<f32, #s.e>) -> tensor<f32>",
        '%0 = stablehlo.custom_call @"odd name"() : () -> tensor<f32>',
        '%cst = "stablehlo.constant"() : () -> tensor<f32>',
        "check.expect_close %s, %s, max_ulp_difference = 18446744073709551615 : tensor<f32>, tensor<f32>",
    ],
)
def test_unusual_operations_are_written_as_mlir_writes_them(text: str) -> None:
    arguments = f"%x: {BOUNDED}, %s: tensor<f32>, %k: tensor<i1>, %t: tensor<f32, #s.e>"
    program = f"module {{\n  func.func @main({arguments}) {{\n    {text}\n    return\n  }}\n}}\n"
    assert write(read(program)) == program
    assert write(read(write(read(program), generic=True))) == program


def test_values_that_are_the_default_are_left_out() -> None:
    accuracy = "#stablehlo.result_accuracy<atol = 0.0, mode = #stablehlo.result_accuracy_mode<DEFAULT>>"
    text = f"func.func @f(%x: f32) {{ %0 = stablehlo.sine %x {{result_accuracy = {accuracy}}} : f32 return }}"
    assert "stablehlo.sine %x : f32" in write(read(text))
    attributes = "{api_version = 1 : i32, has_side_effect = false}"
    text = f"func.func @f() {{ stablehlo.custom_call @t() {attributes} : () -> () return }}"
    assert "stablehlo.custom_call @t() : () -> ()" in write(read(text))


def test_names_of_values() -> None:
    """Numbers are given anew; other names stay, and get a number if they are taken."""
    text = """func.func @f(%x: f32) {
  %7 = "a.b"(%x) : (f32) -> f32
  %n, %8 = "a.b"() : () -> (f32, f32)
  "a.c"() ({
    %x_0 = "a.d"(%7, %8) : (f32, f32) -> f32
    "a.e"() : () -> ()
  }) : () -> ()
  "a.c"() ({
  ^bb0(%y: f32, %9: f32):
    "a.d"(%n, %9) : (f32, f32) -> ()
  }) : () -> ()
  return
}
"""
    expected = """module {
  func.func @f(%x: f32) {
    %0 = "a.b"(%x) : (f32) -> f32
    %n:2 = "a.b"() : () -> (f32, f32)
    "a.c"() ({
      %x_0 = "a.d"(%0, %n#1) : (f32, f32) -> f32
      "a.e"() : () -> ()
    }) : () -> ()
    "a.c"() ({
    ^bb0(%y: f32, %arg0: f32):
      "a.d"(%n#0, %arg0) : (f32, f32) -> ()
    }) : () -> ()
    return
  }
}
"""
    assert write(read(text)) == expected
    module = read(text)
    function = module.regions[0].block.operations[0].regions[0].block
    function.operations[0].results[0].name = "x"
    function.operations[1].results[0].name = "9 b!"
    assert '%x_0 = "a.b"(%x)' in write(module) and "%_9_b_:2 = " in write(module)
