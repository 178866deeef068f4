"""Programs in StableHLO for its portable form: functions that together have every operation, attribute and type.

Each has the first version that can express it. `module` makes the module of all that a version can express.
"""

from __future__ import annotations

VERSIONS = ("0.9.0", "0.10.0", "0.11.0", "0.12.0", "0.14.0", "0.15.0", "0.17.0", "1.0.0", "1.1.0", "1.4.0", "1.5.0",
            "1.6.0", "1.8.0", "1.9.0", "1.10.0", "1.12.0", "1.14.0", "1.16.0")  # fmt: skip
"""Those whose artifacts differ."""

# ruff: noqa: E501, SIM905
_UNARY = """abs cbrt ceil cosine exponential exponential_minus_one floor log log_plus_one logistic negate
round_nearest_afz round_nearest_even rsqrt sign sine sqrt tanh""".split()
_BINARY = "add atan2 divide maximum minimum multiply power remainder subtract".split()
_BITS = "and or xor shift_left shift_right_arithmetic shift_right_logical".split()
_FUNCTIONS: list[tuple[str, str]] = []


def _function(
    since: str, body: str, arguments: str = "%x: tensor<4x6xf32>", results: str = "", returned: str = ""
) -> None:
    """A function, with `%r` as its result of type `results`."""
    name = f"f{len(_FUNCTIONS)}"
    returned = returned or ("%r" if results else "")
    ending = f"func.return {returned} : {results}" if results else "func.return"
    _FUNCTIONS.append((since, f"func.func @{name}({arguments}) -> ({results}) {{\n{body}\n{ending}\n}}"))


def module(version: str) -> str:
    """The text of the module for a version."""
    chosen = [text for since, text in _FUNCTIONS if _key(since) <= _key(version)]
    names = 'mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 2 : i32, test.flags = [true, "a", 1.5 : f32, i32, @f0]'
    return f"module @programs attributes {{{names}}} {{\n" + "\n".join(chosen) + "\n}\n"


SHARDED = """module @sharded attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @other = <["z"=8], device_ids=[1, 0, 3, 2, 4, 5, 6, 7]>
  func.func public @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}p1, {"y":(1)2}]>})
      -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}], replicated={"x"}>}) {
    %0 = stablehlo.add %x, %x : tensor<8x8xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"y"}, {}]> : tensor<8x8xf32>
    %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>]
        manual_axes={"x", "y"} (%a: tensor<4x2xf32>) {
      %b = stablehlo.negate %a : tensor<4x2xf32>
      sdy.return %b : tensor<4x2xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %3 = stablehlo.custom_call @it(%2) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([i, l]) {i=8, j=2, k=4, l=8} reduction={j} need_replication={k, l}, custom>}
        : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %3 : tensor<8x8xf32>
  }
}
"""
"""A program with Shardy's operations and attributes."""


def _key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


_T, _I = "tensor<4x6xf32>", "tensor<4x6xi32>"
_ADD = """({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %s = stablehlo.add %a, %b : tensor<f32>
  stablehlo.return %s : tensor<f32>
})"""
_LESS = """({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %s = "stablehlo.compare"(%a, %b) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %s : tensor<i1>
})"""
_ZERO = "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"

for _name in _UNARY:
    _function("0.9.0", f'%r = "stablehlo.{_name}"(%x) : ({_T}) -> {_T}', results=_T)
for _name in _BINARY:
    _function("0.9.0", f'%r = "stablehlo.{_name}"(%x, %x) : ({_T}, {_T}) -> {_T}', results=_T)
for _name in _BITS:
    _function("0.9.0", f'%r = "stablehlo.{_name}"(%x, %x) : ({_I}, {_I}) -> {_I}', f"%x: {_I}", _I)
for _name in ("not", "popcnt", "count_leading_zeros"):
    _function("0.9.0", f'%r = "stablehlo.{_name}"(%x) : ({_I}) -> {_I}', f"%x: {_I}", _I)
_function("1.4.0", f'%r = "stablehlo.tan"(%x) : ({_T}) -> {_T}', results=_T)
_function("1.9.0", f"""%r = "stablehlo.exponential"(%x) {{result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-5,
  ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}} : ({_T}) -> {_T}""", results=_T)  # fmt: skip
_function("1.10.0", f"""%r = "stablehlo.tanh"(%x) {{result_accuracy = #stablehlo.result_accuracy<
  mode = #stablehlo.result_accuracy_mode<HIGHEST>>}} : ({_T}) -> {_T}""", results=_T)  # fmt: skip

# Constants, of every type.
for _since, _type, _values in (
    ("0.9.0", "i1", "[true, false, true]"), ("0.9.0", "i4", "[-8, 7, 1]"), ("0.9.0", "i8", "[-128, 127, 0]"),
    ("0.9.0", "i16", "[-5, 5, 9]"), ("0.9.0", "i32", "[-2147483648, 5, 9]"), ("0.9.0", "i64", "[-1, 5, 9]"),
    ("0.9.0", "ui4", "[15, 7, 1]"), ("0.9.0", "ui8", "[255, 0, 1]"), ("0.9.0", "ui16", "[65535, 0, 1]"),
    ("0.9.0", "ui32", "[4294967295, 0, 1]"), ("0.9.0", "ui64", "[18446744073709551615, 0, 1]"),
    ("0.9.0", "bf16", "[1.5, -2.0, 0x7FC1]"), ("0.9.0", "f16", "[1.5, -2.0, 0x7E01]"),
    ("0.9.0", "f32", "[1.5, -0.0, 0x7FC00001]"), ("0.9.0", "f64", "[1.5, -2.0, 0x7FF0000000000000]"),
    ("0.9.0", "f8E4M3FN", "[1.5, -2.0, 0.0]"), ("0.9.0", "f8E5M2", "[1.5, -2.0, 0.0]"),
    ("0.10.0", "f8E4M3FNUZ", "[1.5, -2.0, 0.0]"), ("0.10.0", "f8E5M2FNUZ", "[1.5, -2.0, 0.0]"),
    ("0.11.0", "f8E4M3B11FNUZ", "[1.5, -2.0, 0.0]"), ("1.2.0", "i2", "[-2, 1, 0]"), ("1.2.0", "ui2", "[3, 1, 0]"),
    ("1.7.0", "f8E4M3", "[1.5, -2.0, 0.0]"), ("1.7.0", "f8E3M4", "[1.5, -2.0, 0.0]"),
    ("1.8.0", "f4E2M1FN", "[1.5, -2.0, 0.0]"), ("1.8.0", "f8E8M0FNU", "[1.0, 2.0, 0.5]"),
    ("0.9.0", "complex<f32>", "[(1.5, -2.0), (0.0, 1.0), (3.0, 4.0)]"),
    ("0.9.0", "complex<f64>", "[(1.5, -2.0), (0.0, 1.0), (3.0, 4.0)]"),
):  # fmt: skip
    _function(_since, f"%r = stablehlo.constant dense<{_values}> : tensor<3x{_type}>", "", f"tensor<3x{_type}>")
    _first = _values[1:-1].rsplit(", ", 1)[0].split(", ")
    _value = _values[1 : _values.index(")") + 1] if "(" in _values else _first[0]
    _function(_since, f"%r = stablehlo.constant dense<{_value}> : tensor<5x3x{_type}>", "", f"tensor<5x3x{_type}>")
_function("0.9.0", "%r = stablehlo.constant dense<> : tensor<0x3xf32>", "", "tensor<0x3xf32>")
_function("0.9.0", f"%r = stablehlo.constant dense<[{', '.join(['true', 'false', 'true'] * 7)}]> : tensor<21xi1>", "",
          "tensor<21xi1>")  # fmt: skip
_function("0.9.0", "%r = stablehlo.constant dense<[true, true, true, true, true, true, true, true]> : tensor<8xi1>", "",
          "tensor<8xi1>")  # fmt: skip
_function("0.9.0", "%r = stablehlo.constant dense<false> : tensor<300xi1>", "", "tensor<300xi1>")
_function("0.9.0", "%r = stablehlo.constant dense<true> : tensor<i1>", "", "tensor<i1>")

# Shapes and data movement.
for _since, _text, _in, _out in (
    ("0.9.0", "broadcast_in_dim\"(%x) {broadcast_dimensions = array<i64: 1, 2>}", _T, "tensor<3x4x6xf32>"),
    ("0.9.0", "broadcast\"(%x) {broadcast_sizes = array<i64: 2>}", _T, "tensor<2x4x6xf32>"),
    ("0.9.0", "transpose\"(%x) {permutation = array<i64: 1, 0>}", _T, "tensor<6x4xf32>"),
    ("0.9.0", "reshape\"(%x)", _T, "tensor<24xf32>"),
    ("0.9.0", "reverse\"(%x) {dimensions = array<i64: 1>}", _T, _T),
    ("0.9.0", "slice\"(%x) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 4, 5>, "
     "strides = array<i64: 1, 2>}", _T, "tensor<4x2xf32>"),
    ("0.9.0", "bitcast_convert\"(%x)", _T, _I), ("0.9.0", "convert\"(%x)", _T, "tensor<4x6xbf16>"),
    ("0.9.0", "is_finite\"(%x)", _T, "tensor<4x6xi1>"),
    ("0.9.0", "reduce_precision\"(%x) {exponent_bits = 5 : i32, mantissa_bits = 10 : i32}", _T, _T),
    ("0.9.0", "cholesky\"(%x) {lower = true}", "tensor<4x4xf32>", "tensor<4x4xf32>"),
    ("0.9.0", "cholesky\"(%x)", "tensor<4x4xf32>", "tensor<4x4xf32>"),
    ("0.9.0", "fft\"(%x) {fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 6>}", _T,
     "tensor<4x4xcomplex<f32>>"),
    ("0.9.0", "real\"(%x)", "tensor<2xcomplex<f32>>", "tensor<2xf32>"),
    ("0.9.0", "imag\"(%x)", "tensor<2xcomplex<f32>>", "tensor<2xf32>"),
    ("0.9.0", "get_dimension_size\"(%x) {dimension = 1 : i64}", _T, "tensor<i32>"),
    ("0.9.0", "optimization_barrier\"(%x)", _T, _T),
    ("0.9.0", "dynamic_iota\"(%x) {iota_dimension = 0 : i64}", "tensor<1xi64>", "tensor<?xf32>"),
    ("0.9.0", "all_to_all\"(%x) {split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, "
     "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}", _T, "tensor<8x3xf32>"),
    ("0.9.0", "all_gather\"(%x) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, "
     "channel_handle = #stablehlo.channel_handle<handle = 3, type = 0>, use_global_device_ids}", _T, "tensor<4x12xf32>"),
    ("0.9.0", "collective_permute\"(%x) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}", _T, _T),
    ("0.16.0", "collective_broadcast\"(%x) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}", _T, _T),
    ("0.9.0", "cross-replica-sum\"(%x) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}", _T, _T),
):  # fmt: skip
    _function(_since, f'%r = "stablehlo.{_text} : ({_in}) -> {_out}', f"%x: {_in}", _out)
for _since, _text, _in, _out in (
    ("0.9.0", "concatenate\"(%x, %y) {dimension = 1 : i64}", (_T, _T), "tensor<4x12xf32>"),
    ("0.9.0", "complex\"(%x, %y)", (_T, _T), "tensor<4x6xcomplex<f32>>"),
    ("0.9.0", "compare\"(%x, %y) {comparison_direction = #stablehlo<comparison_direction LT>, "
     "compare_type = #stablehlo<comparison_type TOTALORDER>}", (_T, _T), "tensor<4x6xi1>"),
    ("0.9.0", "dot\"(%x, %y) {precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]}",
     (_T, "tensor<6x2xf32>"), "tensor<4x2xf32>"),
    ("0.9.0", "dot_general\"(%x, %y) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], "
     "rhs_contracting_dimensions = [0]>}", (_T, "tensor<6x2xf32>"), "tensor<4x2xf32>"),
    ("0.9.0", "dot_general\"(%x, %y) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], "
     "rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, "
     "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]}", (_T, _T), "tensor<4xf32>"),
    ("1.6.0", "dot_general\"(%x, %y) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], "
     "rhs_contracting_dimensions = [0]>, algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32, "
     "rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
     "num_primitive_operations = 3, allow_imprecise_accumulation = false>}", (_T, "tensor<6x2xf32>"), "tensor<4x2xf32>"),
    ("0.9.0", "pad\"(%x, %y) {edge_padding_low = array<i64: 0, 1>, edge_padding_high = array<i64: 2, -1>, "
     "interior_padding = array<i64: 1, 0>}", (_T, "tensor<f32>"), "tensor<9x6xf32>"),
    ("0.9.0", "triangular_solve\"(%x, %y) {left_side = true, lower = true, unit_diagonal = false, "
     "transpose_a = #stablehlo<transpose ADJOINT>}", ("tensor<4x4xf32>", "tensor<4x3xf32>"), "tensor<4x3xf32>"),
    ("0.9.0", "einsum\"(%x, %y) {einsum_config = \"ab,bc->ac\"}", (_T, "tensor<6x2xf32>"), "tensor<4x2xf32>"),
    ("0.9.0", "torch_index_select\"(%x, %y) {dim = 0 : i64, batch_dims = 0 : i64}", (_T, "tensor<2xi32>"),
     "tensor<2x6xf32>"),
    ("0.9.0", "dynamic_reshape\"(%x, %y)", (_T, "tensor<1xi32>"), "tensor<?xf32>"),
    ("0.9.0", "dynamic_broadcast_in_dim\"(%x, %y) {broadcast_dimensions = array<i64: 0, 1>, "
     "known_expanding_dimensions = array<i64: 1>, known_nonexpanding_dimensions = array<i64: 0>}",
     (_T, "tensor<2xi32>"), "tensor<?x?xf32>"),
    ("0.9.0", "dynamic_broadcast_in_dim\"(%x, %y) {broadcast_dimensions = array<i64: 0, 1>}", (_T, "tensor<2xi32>"),
     "tensor<?x?xf32>"),
    ("0.9.0", "gather\"(%x, %y) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
     "start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>, indices_are_sorted = true}",
     (_T, "tensor<3x1xi32>"), "tensor<3x6xf32>"),
    ("1.1.0", "gather\"(%x, %y) {dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [0], "
     "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, "
     "slice_sizes = array<i64: 1, 2>}", (_T, "tensor<4x1xi32>"), "tensor<4x2xf32>"),
    ("0.9.0", "set_dimension_size\"(%x, %y) {dimension = 0 : i64}", (_T, "tensor<i32>"),
     "tensor<?x6xf32, #stablehlo.bounds<4, ?>>"),
    ("0.9.0", "convolution\"(%x, %y) {dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, "
     "feature_group_count = 1 : i64, batch_group_count = 1 : i64}", ("tensor<1x8x2xf32>", "tensor<3x2x4xf32>"),
     "tensor<1x6x4xf32>"),
    ("0.9.0", "convolution\"(%x, %y) {dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, "
     "window_strides = array<i64: 2>, padding = dense<[[1, 2]]> : tensor<1x2xi64>, lhs_dilation = array<i64: 2>, "
     "rhs_dilation = array<i64: 3>, window_reversal = array<i1: true>, feature_group_count = 2 : i64, "
     "batch_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGH>]}",
     ("tensor<1x2x8xf32>", "tensor<4x1x3xf32>"), "tensor<1x4x6xf32>"),
    ("0.9.0", "rng_bit_generator\"(%x) {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}", ("tensor<2xui64>", _T),
     "tensor<2xui64>, tensor<4xui32>"),
):  # fmt: skip
    _used = _in[:1] if "(%x)" in _text else _in
    _many = _out.startswith("tensor<2xui64>,")
    _function(
        _since, f'%r{":2" if _many else ""} = "stablehlo.{_text} : ({", ".join(_used)}) -> ({_out})',
        f"%x: {_in[0]}, %y: {_in[1]}", _out, "%r#0, %r#1" if _many else "",
    )  # fmt: skip
for _since, _text, _in, _out in (
    ("0.9.0", "clamp\"(%x, %y, %w)", (_T, _T, _T), _T),
    ("0.9.0", "select\"(%x, %y, %w)", ("tensor<4x6xi1>", _T, _T), _T),
    ("0.9.0", "dynamic_slice\"(%x, %y, %w) {slice_sizes = array<i64: 2, 3>}", (_T, "tensor<i32>", "tensor<i32>"),
     "tensor<2x3xf32>"),
    ("0.9.0", "dynamic_update_slice\"(%x, %y, %w, %w)", (_T, "tensor<2x3xf32>", "tensor<i32>"), _T),
    ("0.9.0", "rng\"(%x, %y, %w) {rng_distribution = #stablehlo<rng_distribution NORMAL>}",
     ("tensor<f32>", "tensor<f32>", "tensor<2xi64>"), _T),
    ("0.9.0", "dynamic_gather\"(%x, %y, %w) {dimension_numbers = #stablehlo.gather<offset_dims = [1], "
     "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}",
     (_T, "tensor<3x1xi32>", "tensor<2xi32>"), "tensor<3x?xf32>"),
    ("0.9.0", "dynamic_pad\"(%x, %y, %w, %w, %w)", (_T, "tensor<f32>", "tensor<2xi64>"), "tensor<?x?xf32>"),
    ("0.9.0", "real_dynamic_slice\"(%x, %y, %w, %w)", (_T, "tensor<2xi64>", "tensor<2xi64>"), "tensor<?x?xf32>"),
    ("0.9.0", "dynamic_conv\"(%x, %y, %w) {dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, "
     "feature_group_count = 1 : i64, batch_group_count = 1 : i64}",
     ("tensor<1x8x2xf32>", "tensor<3x2x4xf32>", "tensor<1x2xi64>"), "tensor<1x?x4xf32>"),
):  # fmt: skip
    _values = _text[_text.index("(") + 1 : _text.index(")")].split(", ")
    _types = ", ".join(_in["%x %y %w".split().index(each)] for each in _values)
    _function(_since, f'%r = "stablehlo.{_text} : ({_types}) -> {_out}', ", ".join(map(" : ".join, zip("%x %y %w".split(), _in))), _out)
for _name, _scales, _in in (
    ("training", "%s, %s", 3), ("inference", "%s, %s, %s, %s", 5), ("grad", "%s, %s, %s, %x", 5),
):  # fmt: skip
    _types = ", ".join(_T if each == "%x" else "tensor<6xf32>" for each in ("%x", *_scales.split(", ")))
    _more = "" if _name == "inference" else ", tensor<6xf32>, tensor<6xf32>"
    _function(
        "0.9.0", f'%r{"" if not _more else ":3"} = "stablehlo.batch_norm_{_name}"(%x, {_scales}) '
        f"{{epsilon = 0.001 : f32, feature_index = 1 : i64}} : ({_types}) -> ({_T}{_more})",
        f"%x: {_T}, %s: tensor<6xf32>", _T + _more, "%r#0, %r#1, %r#2" if _more else "",
    )  # fmt: skip
_function("0.9.0", '%r = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> ' + _I, "", _I)
_function("0.9.0", '%r = "stablehlo.partition_id"() : () -> tensor<ui32>', "", "tensor<ui32>")
_function("0.9.0", '%r = "stablehlo.replica_id"() : () -> tensor<ui32>', "", "tensor<ui32>")
_function("0.9.0", '%r = "stablehlo.unary_einsum"(%x) {einsum_config = "ab->a"} : (' + _T + ") -> tensor<4xf32>",
          results="tensor<4xf32>")  # fmt: skip

# Regions.
_function("0.9.0", f'{_ZERO}%r = "stablehlo.reduce"(%x, %z) {_ADD} {{dimensions = array<i64: 1>}} : ({_T}, tensor<f32>) '
          "-> tensor<4xf32>", results="tensor<4xf32>")  # fmt: skip
_function("0.9.0", f'{_ZERO}%r = "stablehlo.reduce_window"(%x, %z) {_ADD} {{window_dimensions = array<i64: 2, 3>}} : '
          f"({_T}, tensor<f32>) -> tensor<3x4xf32>", results="tensor<3x4xf32>")  # fmt: skip
_function("0.9.0", f'{_ZERO}%r = "stablehlo.reduce_window"(%x, %z) {_ADD} {{window_dimensions = array<i64: 2, 3>, '
          "window_strides = array<i64: 2, 1>, base_dilations = array<i64: 1, 2>, window_dilations = array<i64: 1, 2>, "
          f"padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}} : ({_T}, tensor<f32>) -> tensor<2x9xf32>",
          results="tensor<2x9xf32>")  # fmt: skip
_function("0.9.0", f'{_ZERO}%r = "stablehlo.select_and_scatter"(%x, %y, %z) {_LESS[:-1]}, {_ADD[1:]} '
          "{window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 2, 3>} : "
          f"({_T}, tensor<2x2xf32>, tensor<f32>) -> {_T}", f"%x: {_T}, %y: tensor<2x2xf32>", _T)  # fmt: skip
_function("0.9.0", f'%r = "stablehlo.map"(%x, %x) {_ADD} {{dimensions = array<i64: 0, 1>}} : ({_T}, {_T}) -> {_T}',
          results=_T)  # fmt: skip
_function("0.9.0", f'%r = "stablehlo.sort"(%x) {_LESS} {{dimension = 1 : i64, is_stable = true}} : ({_T}) -> {_T}',
          results=_T)  # fmt: skip
_function("0.9.0", f'%r = "stablehlo.sort"(%x) {_LESS} : ({_T}) -> {_T}', results=_T)
_function("0.9.0", f'%r = "stablehlo.scatter"(%x, %i, %u) {_ADD} {{scatter_dimension_numbers = #stablehlo.scatter<'
          "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
          "index_vector_dim = 1>, unique_indices = true} : "
          f"({_T}, tensor<3x1xi32>, tensor<3x6xf32>) -> {_T}", f"%x: {_T}, %i: tensor<3x1xi32>, %u: tensor<3x6xf32>",
          _T)  # fmt: skip
_function("1.1.0", f'%r = "stablehlo.scatter"(%x, %i, %u) {_ADD} {{scatter_dimension_numbers = #stablehlo.scatter<'
          "update_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], "
          "scatter_dims_to_operand_dims = [1], index_vector_dim = 1>} : "
          f"({_T}, tensor<4x1xi32>, tensor<4x2xf32>) -> {_T}", f"%x: {_T}, %i: tensor<4x1xi32>, %u: tensor<4x2xf32>",
          _T)  # fmt: skip
_function("0.9.0", f'%r = "stablehlo.all_reduce"(%x) {_ADD} {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}} : '
          f"({_T}) -> {_T}", results=_T)  # fmt: skip
_function("1.5.0", f'%r:2 = "stablehlo.all_reduce"(%x, %x) {_ADD} {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, '
          f"channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}} : ({_T}, {_T}) -> ({_T}, {_T})",
          results=f"{_T}, {_T}", returned="%r#0, %r#1")  # fmt: skip
_function("0.9.0", f'%r = "stablehlo.reduce_scatter"(%x) {_ADD} {{scatter_dimension = 1 : i64, replica_groups = '
          f"dense<[[0, 1]]> : tensor<1x2xi64>}} : ({_T}) -> tensor<4x3xf32>", results="tensor<4x3xf32>")  # fmt: skip
_function("0.17.0", """%z = stablehlo.constant dense<0.0> : tensor<f64>
%r = "stablehlo.reduce"(%x, %z) ({
^bb0(%a: tensor<f64>, %b: tensor<f64>):
  %s = stablehlo.add %a, %b : tensor<f64>
  stablehlo.return %s : tensor<f64>
}) {dimensions = array<i64: 1>} : (tensor<4x6xf32>, tensor<f64>) -> tensor<4xf64>""", results="tensor<4xf64>")
_function("0.9.0", """%n = stablehlo.constant dense<3> : tensor<i32>
%k = stablehlo.constant dense<0> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%r:2 = "stablehlo.while"(%k, %x) ({
^bb0(%i: tensor<i32>, %a: tensor<4x6xf32>):
  %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
}, {
^bb0(%i: tensor<i32>, %a: tensor<4x6xf32>):
  %j = stablehlo.add %i, %one : tensor<i32>
  %b = stablehlo.add %a, %x : tensor<4x6xf32>
  stablehlo.return %j, %b : tensor<i32>, tensor<4x6xf32>
}) : (tensor<i32>, tensor<4x6xf32>) -> (tensor<i32>, tensor<4x6xf32>)""", results=_T, returned="%r#1")
_function("0.9.0", """%r = "stablehlo.if"(%p) ({
  %a = stablehlo.negate %x : tensor<4x6xf32>
  stablehlo.return %a : tensor<4x6xf32>
}, {
  stablehlo.return %x : tensor<4x6xf32>
}) : (tensor<i1>) -> tensor<4x6xf32>""", "%x: tensor<4x6xf32>, %p: tensor<i1>", _T)
_function("0.9.0", """%r = "stablehlo.case"(%p) ({
  stablehlo.return %x : tensor<4x6xf32>
}, {
  %a = stablehlo.negate %x : tensor<4x6xf32>
  stablehlo.return %a : tensor<4x6xf32>
}, {
  stablehlo.return %x : tensor<4x6xf32>
}) : (tensor<i32>) -> tensor<4x6xf32>""", "%x: tensor<4x6xf32>, %p: tensor<i32>", _T)

# Tokens, tuples, calls.
_function("0.9.0", f'%t = "stablehlo.tuple"(%x, %x) : ({_T}, {_T}) -> tuple<{_T}, {_T}>\n'
          f'%r = "stablehlo.get_tuple_element"(%t) {{index = 1 : i32}} : (tuple<{_T}, {_T}>) -> {_T}', results=_T)  # fmt: skip
_function("0.9.0", f"""%t = "stablehlo.create_token"() : () -> !stablehlo.token
%u = "stablehlo.after_all"(%t, %t) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token
%i:2 = "stablehlo.infeed"(%u) {{infeed_config = "near", layout = [[0, 1]]}} : (!stablehlo.token) -> ({_T}, !stablehlo.token)
%o = "stablehlo.outfeed"(%i#0, %i#1) {{outfeed_config = "far"}} : ({_T}, !stablehlo.token) -> !stablehlo.token
%s = "stablehlo.send"(%x, %o) {{channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}}
  : ({_T}, !stablehlo.token) -> !stablehlo.token
%q:2 = "stablehlo.recv"(%s) {{channel_handle = #stablehlo.channel_handle<handle = 5, type = 3>, is_host_transfer = true}}
  : (!stablehlo.token) -> ({_T}, !stablehlo.token)
%v = "stablehlo.outfeed"(%q#0, %q#1) : ({_T}, !stablehlo.token) -> !stablehlo.token""", results="!stablehlo.token", returned="%v")
_function("1.12.0", f"""%s = "stablehlo.send"(%x, %t) {{channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>,
  is_host_transfer = false, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}} : ({_T}, !stablehlo.token)
  -> !stablehlo.token""", f"%x: {_T}, %t: !stablehlo.token", "!stablehlo.token", "%s")  # fmt: skip
_function("0.9.0", f'%r = "func.call"(%x) {{callee = @f0}} : ({_T}) -> {_T}', results=_T)
_function("0.9.0", f'%r = "stablehlo.custom_call"(%x) {{call_target_name = "it"}} : ({_T}) -> {_T}', results=_T)
_function("0.9.0", f"""%r = "stablehlo.custom_call"(%x) {{call_target_name = "it", has_side_effect = true,
  backend_config = "a\\00\\FFb", api_version = 2 : i32, called_computations = [@f0],
  operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>],
  output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0,
  operand_tuple_indices = []>], mhlo.sharding = "{{replicated}}", mhlo.frontend_attributes = {{b = "2", a = "1"}}}}
  : ({_T}) -> {_T}""", results=_T)  # fmt: skip
_function("1.3.0", f"""%r = "stablehlo.custom_call"(%x) {{call_target_name = "it", api_version = 4 : i32,
  backend_config = {{k = 1 : i64, f = 1.5 : f32, s = "t", on = true, list = [1 : i32, 2 : i32],
  many = array<i64: 1, 2, 3>}}}} : ({_T}) -> {_T}""", results=_T)  # fmt: skip
_function("0.19.0", f"""%r = "stablehlo.composite"(%x) {{name = "my.op", decomposition = @f0, version = 1 : i32,
  composite_attributes = {{n = 2 : i32}}}} : ({_T}) -> {_T}""", results=_T)  # fmt: skip
_function("0.19.0", f'%r = "stablehlo.composite"(%x) {{name = "my.op", decomposition = @f0}} : ({_T}) -> {_T}', results=_T)
_Q, _QA = "tensor<2x!quant.uniform<i8:f32, 0.5:3>>", "tensor<2x!quant.uniform<i8:f32:0, {0.1, 0.25:7}>>"
_function("0.9.0", f'%r = "stablehlo.uniform_quantize"(%x) : (tensor<2xf32>) -> {_Q}', "%x: tensor<2xf32>", _Q)
_function("0.9.0", f'%r = "stablehlo.uniform_dequantize"(%x) : ({_Q}) -> tensor<2xf32>', f"%x: {_Q}", "tensor<2xf32>")
_function("0.18.0", f'%r = "stablehlo.uniform_dequantize"(%x) : ({_QA}) -> tensor<2xf32>', f"%x: {_QA}", "tensor<2xf32>")
_function("1.13.0", """%b = "stablehlo.custom_call"(%x) {call_target_name = "Pin"} : (tensor<2xf32>) -> memref<2xf32>
%r = "stablehlo.custom_call"(%b) {call_target_name = "Unpin"} : (memref<2xf32>) -> tensor<2xf32>""",
          "%x: tensor<2xf32>", "tensor<2xf32>")  # fmt: skip
_function("1.14.0", f"""%r = "stablehlo.composite"(%x) ({{
^bb0(%a: tensor<f32>):
  %n = stablehlo.negate %a : tensor<f32>
  stablehlo.return %n : tensor<f32>
}}) {{name = "my.op", decomposition = @f0}} : ({_T}) -> {_T}""", results=_T)
_function("1.15.0", f"""%s = "stablehlo.async_start"(%x) ({{
^bb0(%a: {_T}):
  %g = "stablehlo.all_gather"(%a) {{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}} : ({_T}) -> tensor<4x12xf32>
  stablehlo.return %g : tensor<4x12xf32>
}}) : ({_T}) -> !stablehlo.future<tensor<4x12xf32>>
%r = "stablehlo.async_done"(%s) : (!stablehlo.future<tensor<4x12xf32>>) -> tensor<4x12xf32>""", results="tensor<4x12xf32>")
_function("1.16.0", f"""%r = "stablehlo.all_reduce"(%x) {_ADD} {{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @f0,
  axes = [#stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>, #stablehlo.axis_ref<name = "y">]>}} : ({_T}) -> {_T}""",
          results=_T)  # fmt: skip
_function("0.9.0", f"%r = stablehlo.add %x, %x : {_T}", f'%x: {_T} {{mhlo.sharding = "{{replicated}}", '
          f'jax.buffer_donor = true, tf.aliasing_output = 0 : i32}} loc("arg"("a/b.py":3:4)), %y: {_T}', _T)  # fmt: skip
_FUNCTIONS.append(("0.9.0", f'func.func private @private(%x: {_T}) -> ({_T} {{jax.result_info = "y"}}) {{ func.return %x : {_T} }}'))
_FUNCTIONS.append(("0.9.0", f"""func.func public @places(%x: {_T}) -> {_T} {{
  %a = stablehlo.add %x, %x : {_T} loc("jit(f)/add"(callsite("g"("d/e.py":10:2) at "f"("d/e.py":20:3))))
  %b = stablehlo.add %a, %a : {_T} loc(fused["h.py":1:2, "i.py":3:4])
  %c = stablehlo.add %b, %b : {_T} loc("only a name")
  func.return %c : {_T} loc(unknown)
}}"""))
