"""How each operation of StableHLO, CHLO and the dialects beside them is written: the table of their assembly formats.

A row has names of operations, their format (see `hlo/mlir/assembly_format.py`; "" if they have none), and the
attributes of their declarations; an attribute in the format has its kind, `name=kind`. Rows of StableHLO's operations
have only these: `vhlo_ops.py` has all. Source: the dialects' declarations (StablehloOps.td, ChloOps.td, CheckOps.td,
Shardy's ops.td, MLIR's func and builtin dialects).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..element_type import ElementType
from ..mlir.assembly_format import AssemblyFormat
from ..mlir.tree import Attribute, Integer
from .region_directives import DIRECTIVES
from .vhlo_ops import ACCURACY, OPS, attribute_names

_Rows = tuple[tuple[str, str, str], ...]

_STABLEHLO: _Rows = (
    (" ".join(OPS.keys() - {"call", "func"}), "", ""),  # those that have a format are in rows below
    (
        "abs cbrt ceil convert cosine count_leading_zeros exponential exponential_minus_one floor imag log "
        "log_plus_one logistic negate not popcnt real round_nearest_afz round_nearest_even rsqrt sign sine sqrt "
        "tan tanh uniform_dequantize uniform_quantize",
        "%operand {} : <same>", "",
    ),
    (
        "add atan2 divide maximum minimum multiply power remainder shift_left shift_right_arithmetic "
        "shift_right_logical subtract and or xor",
        "%lhs , %rhs {} : <same>", "",
    ),
    ("clamp", "%min , %operand , %max {} : <same>", ""),
    ("after_all", "%inputs* {} : <same>", ""),
    ("complex", "%operands* {} : <complex>", ""),
    ("tuple", "%val* {} : <tuple>", ""),
    ("select", "%operands* {} : <select>", ""),
    (
        "is_finite bitcast_convert reshape real_dynamic_slice dynamic_pad dynamic_reshape dynamic_update_slice",
        "%operands* {} : <function>", "",
    ),
    ("create_token replica_id partition_id", "{} : <result>", ""),
    ("constant", "<constant>", ""),
    ("iota", "dim = $iota_dimension {} : <result>", "iota_dimension=integer:i64"),
    ("dynamic_iota", "%output_shape , dim = $iota_dimension {} : <function>", "iota_dimension=integer:i64"),
    ("get_tuple_element", "%operand [ $index ] {} : <function>", "index=integer:i32"),
    (
        "compare", "$comparison_direction , %lhs , %rhs (? , $compare_type ?) {} : <function>",
        "comparison_direction=enum:comparison_direction compare_type=enum:comparison_type",
    ),
    ("slice", "%operand <slice_ranges> {} : <function>", ""),
    ("dynamic_slice", "%operand , %start_indices*, sizes = $slice_sizes {} : <function>", "slice_sizes=integers"),
    ("broadcast", "%operand , sizes = $broadcast_sizes {} : <function>", "broadcast_sizes=integers"),
    ("broadcast_in_dim", "%operand , dims = $broadcast_dimensions {} : <function>", "broadcast_dimensions=integers"),
    (
        "dynamic_broadcast_in_dim", "%operand , %output_dimensions , dims = $broadcast_dimensions {} : <function>",
        "broadcast_dimensions=integers",
    ),
    ("transpose", "%operand , dims = $permutation {} : <function>", "permutation=integers"),
    ("reverse", "%operand , dims = $dimensions {} : <same>", "dimensions=integers"),
    (
        "pad",
        "%operand , %padding_value , low = $edge_padding_low , high = $edge_padding_high , "
        "interior = $interior_padding {} : <function>",
        "edge_padding_low=integers edge_padding_high=integers interior_padding=integers",
    ),
    ("concatenate", "%inputs*, dim = $dimension {} : <function>", "dimension=integer:i64"),
    ("get_dimension_size", "%operand , dim = $dimension {} : <function>", "dimension=integer:i64"),
    ("set_dimension_size", "%operand , %size , dim = $dimension {} : <function>", "dimension=integer:i64"),
    ("reduce_precision", "%operand , format = <format> {} : <same>", ""),
    ("dot", "%lhs , %rhs ~ <precision> {} : <function>", ""),
    ("dot_general", "%lhs , %rhs , <dot_dimensions> ~ <precision> {} : <function>", ""),
    (
        "convolution",
        "( %operands* ) dim_numbers = <convolution_dimensions> , window = { <window> } {} : <function>", "",
    ),
    ("einsum", "%lhs , %rhs , config = $einsum_config {} : <function>", "einsum_config=string"),
    ("unary_einsum", "%operand , config = $einsum_config {} : <function>", "einsum_config=string"),
    ("cholesky", "%a (? , lower = $lower ?) {} : <same>", "lower=bool"),
    (
        "fft", "%operand , type = $fft_type , length = $fft_length {} : <function>",
        "fft_type=enum:fft_type fft_length=integers",
    ),
    (
        "rng", "%a , %b , %shape , distribution = $rng_distribution {} : <function>",
        "rng_distribution=enum:rng_distribution",
    ),
    (
        "rng_bit_generator", "%initial_state , algorithm = $rng_algorithm {} : <function>",
        "rng_algorithm=enum:rng_algorithm",
    ),
    ("while", "<while>", ""),
    ("reduce", "<reduce>", ""),
    ("return", "%results* {} (? : <operands> ?)", ""),
    ("optimization_barrier", "{} (? %operand* : <pairwise> ?: ( ) ?)", ""),
    ("custom_call", "$call_target_name ( %inputs* ) {} : <function>", "call_target_name=symbol_name"),
    ("composite", "$name %operands* <regions> {} : <function>", "name=string"),
)  # fmt: skip

_CHLO: _Rows = (
    (
        "_asin_acos_kernel acos acosh asin asinh atan atanh bessel_i1e conj cosh sinh tan digamma erf erf_inv erfc "
        "is_inf is_neg_inf is_pos_inf lgamma square",
        "%operand {} : <operand> -> <results>", "",
    ),
    (
        "broadcast_add broadcast_atan2 broadcast_divide broadcast_maximum broadcast_minimum broadcast_multiply "
        "broadcast_next_after broadcast_polygamma broadcast_power broadcast_remainder broadcast_shift_left "
        "broadcast_shift_right_arithmetic broadcast_shift_right_logical broadcast_subtract broadcast_zeta "
        "broadcast_and broadcast_or broadcast_xor broadcast_complex",
        "%lhs , %rhs {} : <function>", "broadcast_dimensions",
    ),
    (
        "broadcast_compare", "%lhs , %rhs {} : <function>",
        "broadcast_dimensions comparison_direction compare_type",
    ),
    ("broadcast_select", "%pred , %on_true , %on_false {} : <function>", ""),
    ("next_after polygamma zeta mulhi", "%lhs , %rhs {} : <operands> -> <results>", ""),
    ("constant", "<constant>", "value"),
    ("constant_like", "", "value"),
    ("ragged_dot", "", "ragged_dot_dimension_numbers precision_config"),
    (
        "top_k", "( %operand , k = $k (? , is_stable = $is_stable ?) ) {} : <operand> -> <results>",
        "k=integer:i64 is_stable=bool",
    ),
    (
        "scan", "<scan>",
        "dimension scan_dim_size is_reverse is_associative operandSegmentSizes resultSegmentSizes",
    ),
)  # fmt: skip

_SHARDING = "text:#sdy.sharding~"
_SHARDINGS = "in_shardings=text:#sdy.sharding_per_value<~> out_shardings=text:#sdy.sharding_per_value<~>"
_SHARDY: _Rows = (
    ("mesh", "$sym_name = $mesh {}", "sym_name=symbol_name mesh=text:#sdy.mesh~"),
    ("constant", "<constant>", "value"),
    ("sharding_constraint reshard", "%input $sharding {} : <same>", f"sharding={_SHARDING}"),
    (
        "manual_computation",
        "( %tensors* ) in_shardings ~ = ~ $in_shardings out_shardings ~ = ~ $out_shardings "
        "manual_axes ~ = ~ $manual_axes <body> {} : <function>",
        f"{_SHARDINGS} manual_axes=text:#sdy<manual_axes~>",
    ),
    (
        "named_computation",
        "< $name > ~ ( %operands* ) (? in_shardings ~ = ~ $in_shardings ?) (? out_shardings ~ = ~ $out_shardings ?) "
        "<body> {} : <function>",
        f"name=string {_SHARDINGS}",
    ),
    ("return", "%results* {} (? : <operands> ?)", ""),
    (
        "propagation_barrier", "%input allowed_direction ~ = ~ $allowed_direction {} : <same>",
        "allowed_direction=word:NONE,FORWARD,BACKWARD,BOTH",
    ),
    ("sharding_group", "%input group_id ~ = ~ $group_id {} : <operand>", "group_id=integer:i64"),
)  # fmt: skip

_BUILTIN: _Rows = (("module", "<module>", "sym_name sym_visibility"),)
_FUNC: _Rows = (
    ("func", "<func>", "arg_attrs function_type no_inline res_attrs sym_name sym_visibility"),
    ("call", "$callee ( %operands* ) {} : <function>", "callee=symbol arg_attrs no_inline res_attrs"),
    ("return", "{} (? %operands* : <operands> ?)", ""),
)
_ARITH: _Rows = (("constant", "<constant>", "value"),)
"""PyTorch's exporter writes it."""
_CHECK: _Rows = (
    ("expect_eq_const", "%lhs , <checked_literal> {}", "value"),
    (
        "expect_almost_eq_const", "%lhs , <checked_literal> (? , tolerance = $tolerance ?) {}",
        "value tolerance=float",
    ),
    ("expect_eq", "%lhs , %rhs {} : <operand>", ""),
    ("expect_almost_eq", "%lhs , %rhs (? , tolerance = $tolerance ?) {} : <operand>", "tolerance=float"),
    (
        "expect_close",
        "%actual , %expected , max_ulp_difference = $max_ulp_difference (? , min_ulp_difference = $min_ulp_difference "
        "?) : {} <operands>",
        "max_ulp_difference=integer:ui64 min_ulp_difference=integer:ui64",
    ),
    (
        "expect_serialized_eq", "%expected , probe_id = $probe_id (? , iter = $iteration ?) {} : <operand>",
        "probe_id=string iteration=integer:ui32",
    ),
)  # fmt: skip
_INTERPRETER: _Rows = (
    ("probe", "%operand , probe_id = $probe_id {} : <same>", "probe_id=string"),
    ("print", "%operand {} : <operand>", ""),
    ("run_parallel", "", "programs infeed"),
)

_DEFAULTS: dict[str, dict[str, Attribute]] = {
    "stablehlo.custom_call": {
        "has_side_effect": False, "api_version": Integer(1, ElementType.S32), "called_computations": (),
        "output_operand_aliases": (),
    },
    "stablehlo.composite": {"composite_attributes": {}, "version": Integer(0, ElementType.S32)},
    "chlo.top_k": {"is_stable": True},
    "chlo.scan": {"is_reverse": False},
}  # fmt: skip
"""Values of attributes that a format leaves out."""
_ACCURACY: Mapping[str, Attribute] = {"result_accuracy": ACCURACY.make(0)}
_ARGUMENTS = {"stablehlo.while": ("iterArg",), "chlo.scan": ("input", "carry")}
"""The names of arguments of regions."""
_RESULTS = {
    "stablehlo.rng_bit_generator": ("output_state", "output"),
    "stablehlo.batch_norm_training": ("output", "batch_mean", "batch_var"),
    "stablehlo.batch_norm_grad": ("grad_operand", "grad_scale", "grad_offset"),
    "chlo.top_k": ("values", "indices"),
}
"""The names of results, where an operation has several that are not alike."""


def _format(name: str, assembly: str, written: str) -> AssemblyFormat:
    kinds = {name: kind for name, _, kind in (word.partition("=") for word in written.split())}
    dialect, _, base = name.partition(".")
    if dialect == "stablehlo":
        kinds = {**dict.fromkeys(attribute_names(base), ""), **kinds}
    defaults = _ACCURACY if "result_accuracy" in kinds else _DEFAULTS.get(name, {})
    return AssemblyFormat(name, assembly, kinds, defaults, DIRECTIVES, _ARGUMENTS.get(name, ()), _RESULTS.get(name, ()))


_DIALECTS = {
    "stablehlo": _STABLEHLO, "chlo": _CHLO, "sdy": _SHARDY, "builtin": _BUILTIN, "func": _FUNC, "arith": _ARITH,
    "check": _CHECK, "interpreter": _INTERPRETER,
}  # fmt: skip
ASSEMBLY_FORMATS: dict[str, AssemblyFormat] = {
    name: _format(name, assembly, written)
    for dialect, rows in _DIALECTS.items()
    for names, assembly, written in rows
    for name in (f"{dialect}.{each}" for each in names.split())
}
"""The assembly formats of all operations, by their full names."""
