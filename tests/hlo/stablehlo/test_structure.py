"""Programs in the generic form whose operations have too few or too many parts: refused with their place."""

from __future__ import annotations

import re

import pytest
from hloom.hlo import HloParseError, UnsupportedError, stablehlo

_ADD = """({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %s = stablehlo.add %a, %b : tensor<f32>
  stablehlo.return %s : tensor<f32>
})"""


def _program(line: str) -> str:
    return f"func.func @main(%x: tensor<f32>) -> tensor<f32> {{\n{line}\nreturn %x : tensor<f32>\n}}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('%0 = "stablehlo.while"(%x) : (tensor<f32>) -> tensor<f32>', "while: it has 0 regions, not 2"),
        ('%0 = "stablehlo.case"(%x) : (tensor<f32>) -> tensor<f32>', "case: it has 0 regions, not 1"),
        ('%0 = "stablehlo.if"() : () -> tensor<f32>', "if: it has 0 operands, not 1"),
        ('%0 = "stablehlo.clamp"(%x) : (tensor<f32>) -> tensor<f32>', "clamp: it has 1 operand, not 3"),
        ('%0:2 = "stablehlo.add"(%x, %x) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)',
         "add (tensor<f32>, tensor<f32>): add of (f32[], f32[]) gives f32[], not (f32[], f32[])"),
        ('%0 = "stablehlo.recv"(%x) : (tensor<f32>) -> ()', "recv: it has 0 results, not 1"),
        ('%0 = "chlo.mulhi"(%x) : (tensor<f32>) -> tensor<f32>', "chlo.mulhi: it has 1 operand, not 2"),
        ('%0 = "stablehlo.concatenate"() {dimension = 0 : i64} : () -> tensor<f32>', "concatenate: it has 0 operands"),
        (f'%0 = "stablehlo.negate"(%x) {_ADD} : (tensor<f32>) -> tensor<f32>', "negate: it has 1 region, not 0"),
        ('%0 = "stablehlo.constant"() {value = dense<1.0> : tensor<3xf32>} : () -> tensor<f32>',
         "constant: its value is tensor<3xf32>, its result tensor<f32>"),
        ('%0 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<f32>',
         "constant: its value is tensor<i32>, its result tensor<f32>"),
        ('%0 = "stablehlo.sort"(%x) ({}) : (tensor<f32>) -> tensor<f32>', "sort: a region of it has"),
    ],
)  # fmt: skip
def test_wrong_counts_are_named(line: str, message: str) -> None:
    if line.startswith("%0 =") and line.endswith("-> ()"):
        line = line.removeprefix("%0 = ")
    with pytest.raises(HloParseError, match=rf"<stablehlo>:2:1: (stablehlo\.)?{re.escape(message)}"):
        stablehlo.parse(_program(line))


@pytest.mark.parametrize(
    "line",
    [
        '"stablehlo.broadcast_in_dim"(%x) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<?xf32>',
        '"stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<?xf32>',
    ],
)
def test_sizes_that_nothing_says(line: str) -> None:
    with pytest.raises((UnsupportedError, HloParseError), match="<stablehlo>:2:1"):
        stablehlo.parse(_program(f"%0 = {line}"))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ('"func.func"() ({}) {sym_name = "main"} : () -> ()', "it has no type of functions"),
        ('"func.func"() ({}) {function_type = () -> ()} : () -> ()', "it has no name"),
        ('"func.func"() {function_type = () -> (), sym_name = "main"} : () -> ()', "it has 0 regions, not 1"),
        ('"func.func"() ({^bb0(%x: i32):\n "func.return"() : () -> ()}) '
         '{function_type = () -> (), sym_name = "main"} : () -> ()', "its body has 1 arguments, its type 0"),
        ('"func.func"() ({"func.return"() : () -> ()}) {function_type = () -> (), sym_name = "main", '
         'arg_attrs = ["a"]} : () -> ()', "arg_attrs is no list of dictionaries"),
        ('"func.func"() ({"func.return"() : () -> ()}) {function_type = () -> (), sym_name = "main", '
         'res_attrs = [{}]} : () -> ()', "res_attrs has 1 dictionaries for 0 values"),
    ],
)  # fmt: skip
def test_functions_have_a_type_and_a_name(function: str, message: str) -> None:
    with pytest.raises(HloParseError, match=f"func.func: {re.escape(message)}"):
        stablehlo.parse(function)


_TYPED = """func.func @main(%x: tensor<f32>, %v: tensor<3xf32>, %p: tensor<i1>, %i: tensor<i32>) -> tensor<f32> {
LINE
return %x : tensor<f32>
}
func.func private @f(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }
func.func private @two(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) { return %a, %a : tensor<f32>, tensor<f32> }"""
_RETURN = "({ stablehlo.return %x : tensor<f32> })"
_THREE = "({ stablehlo.return %x, %x, %x : tensor<f32>, tensor<f32>, tensor<f32> })"


def _loop(type_: str, arguments: str) -> str:
    regions = f"({{ ^bb0({arguments}): stablehlo.return %p : tensor<i1> }}, {{ ^bb0(%b: {type_}): "
    return f'"stablehlo.while"(%x) {regions} stablehlo.return %b : {type_} }}) : (tensor<f32>) -> tensor<f32>'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%0 = func.call @f(%x) : (tensor<f32>) -> tensor<i32>", "its result is f32[], not tensor<i32>"),
        ("%0 = func.call @f(%v) : (tensor<3xf32>) -> tensor<f32>", "@f takes tensor<f32>, not f32[3]"),
        ("%0 = func.call @f(%i) : (tensor<i32>) -> tensor<f32>", "@f takes tensor<f32>, not s32[]"),
        ("%0 = func.call @two(%x) : (tensor<f32>) -> tensor<f32>", "its result is (f32[], f32[]), not tensor<f32>"),
        ("%0:2 = func.call @f(%x) : (tensor<f32>) -> (tensor<f32>, tensor<f32>)", "it has 2 results, and 1 are"),
        ("func.call @two(%x) : (tensor<f32>) -> ()", "it has 0 results, and 2 are"),
        ('%0 = stablehlo.composite "a.b" %x {decomposition = @f} : (tensor<f32>) -> tensor<i32>', "its result is"),
        (f'%0 = "stablehlo.case"(%i) {_RETURN} : (tensor<i32>) -> tensor<3xf32>', "its result is f32[], not"),
        (f'%0:2 = "stablehlo.case"(%i) {_THREE} : (tensor<i32>) -> (tensor<f32>, tensor<f32>)', "it has 2 results"),
        (f'%0 = "stablehlo.case"(%i) {_RETURN.replace("{", "{ ^bb0(%a: tensor<f32>):")} : (tensor<i32>) -> tensor<f32>',
         "a region of it has 1 arguments, not 0"),
        (_loop("tensor<i32>", "%a: tensor<i32>"), "a region of it takes tensor<i32>, not tensor<f32>"),
        (_loop("tensor<f32>", "%a: tensor<f32>, %c: tensor<f32>"), "a region of it has 2 arguments, not 1"),
        ('%0 = "stablehlo.optimization_barrier"(%x) : (tensor<f32>) -> tensor<i32>', "its result is f32[]"),
        ('%0 = "stablehlo.tuple"(%x, %x) : (tensor<f32>, tensor<f32>) -> tuple<tensor<f32>>', "its result is (f32"),
        ('%t = stablehlo.tuple %x, %x : tuple<tensor<f32>, tensor<f32>>\n%0 = "stablehlo.get_tuple_element"(%t) '
         "<{index = 0 : i32}> : (tuple<tensor<f32>, tensor<f32>>) -> tensor<i32>", "its result is f32[], not"),
    ],
)  # fmt: skip
def test_types_that_an_operation_says_are_those_that_it_has(line: str, message: str) -> None:
    with pytest.raises((HloParseError, UnsupportedError), match=rf"<stablehlo>:[23]:\d+: .*{re.escape(message)}"):
        stablehlo.parse(_TYPED.replace("LINE", line))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @main(%x: tensor<f32>) -> tensor<i32> { return %x : tensor<f32> }",
         "its body has tensor<f32> where its type has tensor<i32>"),
        ("func.func @main(%x: tensor<f32>) -> tensor<f32> { return }", "its body returns 0 values, its type has 1"),
        ('"func.func"() ({^bb0(%x: tensor<i32>):\n "func.return"() : () -> ()}) '
         '{function_type = (tensor<f32>) -> (), sym_name = "main"} : () -> ()', "its body has tensor<i32> where"),
        ("func.func @main() { return }\nfunc.func @main() { return }", "the name @main is defined twice"),
    ],
)  # fmt: skip
def test_functions_return_values_of_their_types(text: str, message: str) -> None:
    with pytest.raises(HloParseError, match=f"func.func: {re.escape(message)}"):
        stablehlo.parse(text)


_GATHER = (
    "{dimension_numbers = #stablehlo.gather<offset_dims = [0], start_index_map = [0], index_vector_dim = 0>} : "
    "(tensor<3xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xf32>"
)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("stablehlo.dynamic_broadcast_in_dim %x, %two, dims = [] : (tensor<f32>, tensor<1xi64>) -> tensor<3xf32>",
         "its operand says that the sizes are [2], but its result is f32[3]"),
        ("stablehlo.dynamic_broadcast_in_dim %x, %two, dims = [] : (tensor<f32>, tensor<1xi64>) -> tensor<?x3xf32>",
         "its result is f32[2], not tensor<?x3xf32>"),
        ("stablehlo.dynamic_reshape %v, %two : (tensor<3xf32>, tensor<1xi64>) -> tensor<3xf32>",
         "its operand says that the sizes are [2], but its result is f32[3]"),
        ("stablehlo.dynamic_iota %two, dim = 0 : (tensor<1xi64>) -> tensor<3xf32>",
         "its operand says that the sizes are [2], but its result is f32[3]"),
        ("stablehlo.dynamic_pad %v, %x, %two, %two, %two : (tensor<3xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, "
         "tensor<1xi64>) -> tensor<3xf32>", "pad"),
        ("stablehlo.real_dynamic_slice %v, %two, %two, %two : (tensor<3xf32>, tensor<1xi64>, tensor<1xi64>, "
         "tensor<1xi64>) -> tensor<3xf32>", "slice"),
        ("stablehlo.real_dynamic_slice %v, %i, %more, %one : (tensor<3xf32>, tensor<1xi64>, tensor<1xi64>, "
         "tensor<1xi64>) -> tensor<3xf32>", "its limits are its starts plus [2], but its result is f32[3]"),
        (f'"stablehlo.dynamic_gather"(%v, %i, %two) {_GATHER}', "gather"),
        ('"stablehlo.dynamic_conv"(%a, %a, %two) {dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, '
         "batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
         "(tensor<1x1x1xf32>, tensor<1x1x1xf32>, tensor<1xi64>) -> tensor<1x1x1xf32>",
         "the padding must have two numbers for each dimension, not s64[1]"),
        ("stablehlo.set_dimension_size %v, %three, dim = 1 : (tensor<3xf32>, tensor<i32>) -> tensor<3xf32>",
         "f32[3] has no dimension 1"),
        ('"stablehlo.set_dimension_size"(%v, %two) {dimension = 0 : i64} : (tensor<3xf32>, tensor<1xi64>) -> '
         "tensor<3xf32>", "2"),
        ('stablehlo.custom_call @stablehlo.dynamic_top_k(%v) : (tensor<3xf32>) -> tensor<3xf32>', "it has 1 operands"),
        ("stablehlo.custom_call @f(%v, %two) {indices_of_shape_operands = dense<5> : tensor<1xi64>} : "
         "(tensor<3xf32>, tensor<1xi64>) -> tensor<3xf32>", "indices_of_shape_operands = [5]"),
        ("stablehlo.custom_call @f(%v, %two) {indices_of_shape_operands = dense<1> : tensor<1xi64>} : "
         "(tensor<3xf32>, tensor<1xi64>) -> tensor<3xf32>", "its result is f32[2], not tensor<3xf32>"),
    ],
)  # fmt: skip
def test_sizes_that_contradict_the_type_of_the_result(line: str, message: str) -> None:
    arguments = "%x: tensor<f32>, %v: tensor<3xf32>, %a: tensor<1x1x1xf32>, %i: tensor<1xi64>"
    text = f"""func.func @main({arguments}) -> tensor<f32> {{
%two = stablehlo.constant dense<2> : tensor<1xi64>
%one = stablehlo.constant dense<1> : tensor<1xi64>
%three = stablehlo.constant dense<3> : tensor<i32>
%more = stablehlo.add %i, %two : tensor<1xi64>
%0 = {line}
return %x : tensor<f32>
}}"""
    with pytest.raises((HloParseError, UnsupportedError), match=rf"<stablehlo>:6:\d+: .*{re.escape(message)}"):
        stablehlo.parse(text)
