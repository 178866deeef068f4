"""How each operation of StableHLO, CHLO and the dialects beside them is written: the table of their forms.

A line has an operation's names, its form (see `hlo/mlir/form.py`; "" for operations that have none), and the attributes
of its declaration: those in the form with their kind, all others as words. Source: the dialects' declarations
(StablehloOps.td, ChloOps.td, CheckOps.td, Shardy's ops.td, MLIR's func and builtin dialects).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..element_type import ElementType
from ..mlir.form import Form
from ..mlir.tree import Attribute, Integer
from .directives import DIRECTIVES
from .records import DEFAULT_ACCURACY


def _forms(
    names: str, assembly: str = "", others: str = "", defaults: Mapping[str, Attribute] | None = None,
    arguments: str = "", results: str = "", **kinds: str,
) -> Iterator[tuple[str, Form]]:  # fmt: skip
    """`others`: attributes that are not in the form. `arguments`: the name of the arguments of regions. `results`: the
    names of the results."""
    attributes = {**dict.fromkeys(others.split(), ""), **kinds}
    for name in names.split():
        yield name, Form(name, assembly, attributes, defaults or {}, DIRECTIVES, arguments, results.split())


def _stablehlo() -> Iterator[tuple[str, Form]]:
    for names, assembly, others in (
        (
            "abs ceil convert count_leading_zeros floor imag not negate popcnt real round_nearest_afz "
            "round_nearest_even sign uniform_quantize uniform_dequantize",
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
        ("is_finite bitcast_convert reshape real_dynamic_slice dynamic_pad", "%operands* {} : <function>", ""),
        ("dynamic_reshape dynamic_update_slice", "%operands* {} : <function>", ""),
        ("create_token replica_id partition_id", "{} : <result>", ""),
        ("constant", "<constant>", "value"),
        ("slice", "%operand <slice_ranges> {} : <function>", "start_indices limit_indices strides"),
        ("reduce", "<reduce>", "dimensions"),
        ("return", "%results* {} (? : <operands> ?)", ""),
        ("optimization_barrier", "{} (? %operand* : <pairwise> ?: ( ) ?)", ""),
        ("if case async_start async_done", "", ""),
        ("infeed", "", "infeed_config layout"),
        ("outfeed", "", "outfeed_config"),
        ("send recv", "", "channel_handle is_host_transfer source_target_pairs"),
        ("all_gather", "", "all_gather_dim replica_groups channel_handle use_global_device_ids"),
        ("all_reduce", "", "replica_groups channel_handle use_global_device_ids"),
        ("reduce_scatter", "", "scatter_dimension replica_groups channel_handle use_global_device_ids"),
        ("all_to_all", "", "split_dimension concat_dimension split_count replica_groups channel_handle"),
        ("collective_broadcast", "", "replica_groups channel_handle has_dynamic_root"),
        ("collective_reduce", "", "replica_groups channel_handle use_global_device_ids has_dynamic_root"),
        ("collective_permute", "", "source_target_pairs channel_handle"),
        ("cross-replica-sum", "", "replica_groups"),
        ("batch_norm_inference", "", "epsilon feature_index"),
        ("gather", "", "dimension_numbers slice_sizes indices_are_sorted"),
        ("dynamic_gather", "", "dimension_numbers indices_are_sorted"),
        ("scatter", "", "scatter_dimension_numbers indices_are_sorted unique_indices"),
        ("select_and_scatter", "", "window_dimensions window_strides padding"),
        ("sort", "", "dimension is_stable"),
        ("map", "", "dimensions"),
        ("reduce_window", "", "window_dimensions window_strides base_dilations window_dilations padding"),
        ("triangular_solve", "", "left_side lower unit_diagonal transpose_a"),
        ("torch_index_select", "", "dim batch_dims"),
        (
            "dynamic_conv", "",
            "window_strides lhs_dilation rhs_dilation window_reversal dimension_numbers feature_group_count "
            "batch_group_count precision_config",
        ),
        (
            "convolution",
            "( %operands* ) dim_numbers = <convolution_dimensions> , window = { <window> } {} : <function>",
            "window_strides padding lhs_dilation rhs_dilation window_reversal dimension_numbers feature_group_count "
            "batch_group_count precision_config",
        ),
        ("dot", "%lhs , %rhs ~ <precision> {} : <function>", "precision_config"),
        (
            "dot_general", "%lhs , %rhs , <dot_dimensions> ~ <precision> {} : <function>",
            "dot_dimension_numbers precision_config algorithm",
        ),
        (
            "reduce_precision", "%operand , format = <format> {} : <same>",
            "exponent_bits mantissa_bits",
        ),
    ):  # fmt: skip
        yield from _forms(_of("stablehlo", names), assembly, others)
    yield from _forms("stablehlo.while", "<while>", arguments="iterArg")
    yield from _forms("stablehlo.batch_norm_grad", "", "epsilon feature_index",
                      results="grad_operand grad_scale grad_offset")  # fmt: skip
    yield from _forms("stablehlo.batch_norm_training", "", "epsilon feature_index",
                      results="output batch_mean batch_var")  # fmt: skip
    yield from _forms(
        _of(
            "stablehlo",
            "cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh",
        ),
        "%operand {} : <same>", "result_accuracy", {"result_accuracy": DEFAULT_ACCURACY},
    )  # fmt: skip
    for name, assembly, others, kinds in (
        ("iota", "dim = $iota_dimension {} : <result>", "", {"iota_dimension": "integer:i64"}),
        (
            "dynamic_iota", "%output_shape , dim = $iota_dimension {} : <function>", "",
            {"iota_dimension": "integer:i64"},
        ),
        ("get_tuple_element", "%operand [ $index ] {} : <function>", "", {"index": "integer:i32"}),
        (
            "compare", "$comparison_direction , %lhs , %rhs (? , $compare_type ?) {} : <function>", "",
            {"comparison_direction": "enum:comparison_direction", "compare_type": "enum:comparison_type"},
        ),
        (
            "dynamic_slice", "%operand , %start_indices*, sizes = $slice_sizes {} : <function>", "",
            {"slice_sizes": "integers"},
        ),
        ("broadcast", "%operand , sizes = $broadcast_sizes {} : <function>", "", {"broadcast_sizes": "integers"}),
        (
            "broadcast_in_dim", "%operand , dims = $broadcast_dimensions {} : <function>", "",
            {"broadcast_dimensions": "integers"},
        ),
        (
            "dynamic_broadcast_in_dim", "%operand , %output_dimensions , dims = $broadcast_dimensions {} : <function>",
            "known_expanding_dimensions known_nonexpanding_dimensions", {"broadcast_dimensions": "integers"},
        ),
        ("cholesky", "%a (? , lower = $lower ?) {} : <same>", "", {"lower": "bool"}),
        ("concatenate", "%inputs*, dim = $dimension {} : <function>", "", {"dimension": "integer:i64"}),
        ("einsum", "%lhs , %rhs , config = $einsum_config {} : <function>", "", {"einsum_config": "string"}),
        ("unary_einsum", "%operand , config = $einsum_config {} : <function>", "", {"einsum_config": "string"}),
        (
            "fft", "%operand , type = $fft_type , length = $fft_length {} : <function>", "",
            {"fft_type": "enum:fft_type", "fft_length": "integers"},
        ),
        ("get_dimension_size", "%operand , dim = $dimension {} : <function>", "", {"dimension": "integer:i64"}),
        ("set_dimension_size", "%operand , %size , dim = $dimension {} : <function>", "", {"dimension": "integer:i64"}),
        ("reverse", "%operand , dims = $dimensions {} : <same>", "", {"dimensions": "integers"}),
        (
            "pad",
            "%operand , %padding_value , low = $edge_padding_low , high = $edge_padding_high , "
            "interior = $interior_padding {} : <function>",
            "",
            {"edge_padding_low": "integers", "edge_padding_high": "integers", "interior_padding": "integers"},
        ),
        ("transpose", "%operand , dims = $permutation {} : <function>", "", {"permutation": "integers"}),
        (
            "rng", "%a , %b , %shape , distribution = $rng_distribution {} : <function>", "",
            {"rng_distribution": "enum:rng_distribution"},
        ),
        (
            "rng_bit_generator", "%initial_state , algorithm = $rng_algorithm {} : <function>", "",
            {"rng_algorithm": "enum:rng_algorithm", "results": "output_state output"},
        ),
    ):  # fmt: skip
        yield from _forms(f"stablehlo.{name}", assembly, others, **kinds)
    yield from _forms(
        "stablehlo.custom_call",
        "$call_target_name ( %inputs* ) {} : <function>",
        "has_side_effect backend_config api_version called_computations operand_layouts result_layouts "
        "output_operand_aliases result_tilings",
        {
            "has_side_effect": False, "api_version": Integer(1, ElementType.S32), "called_computations": (),
            "output_operand_aliases": (),
        },
        call_target_name="symbol_name",
    )  # fmt: skip
    yield from _forms(
        "stablehlo.composite",
        "$name %operands* <regions> {} : <function>",
        "composite_attributes decomposition version",
        {"composite_attributes": {}, "version": Integer(0, ElementType.S32)},
        name="string",
    )


def _of(dialect: str, names: str) -> str:
    return " ".join(f"{dialect}.{name}" for name in names.split())



def _chlo() -> Iterator[tuple[str, Form]]:
    yield from _forms(
        _of(
            "chlo",
            "_asin_acos_kernel acos acosh asin asinh atan atanh bessel_i1e conj cosh sinh tan digamma erf erf_inv erfc "
            "is_inf is_neg_inf is_pos_inf lgamma square",
        ),
        "%operand {} : <operand> -> <results>",
    )
    yield from _forms(
        _of(
            "chlo",
            "broadcast_add broadcast_atan2 broadcast_divide broadcast_maximum broadcast_minimum broadcast_multiply "
            "broadcast_next_after broadcast_polygamma broadcast_power broadcast_remainder broadcast_shift_left "
            "broadcast_shift_right_arithmetic broadcast_shift_right_logical broadcast_subtract broadcast_zeta "
            "broadcast_and broadcast_or broadcast_xor broadcast_complex",
        ),
        "%lhs , %rhs {} : <function>",
        "broadcast_dimensions",
    )
    yield from _forms("chlo.broadcast_select", "%pred , %on_true , %on_false {} : <function>")
    yield from _forms(
        _of("chlo", "next_after polygamma zeta mulhi"), "%lhs , %rhs {} : <operands> -> <results>"
    )  # fmt: skip
    yield from _forms("chlo.constant", "<constant>", "value")
    yield from _forms("chlo.constant_like", "", "value")
    yield from _forms(
        "chlo.broadcast_compare", "%lhs , %rhs {} : <function>",
        "broadcast_dimensions comparison_direction compare_type",
    )  # fmt: skip
    yield from _forms("chlo.ragged_dot", "", "ragged_dot_dimension_numbers precision_config")
    yield from _forms(
        "chlo.top_k",
        "( %operand , k = $k (? , is_stable = $is_stable ?) ) {} : <operand> -> <results>",
        "",
        {"is_stable": True},
        results="values indices",
        k="integer:i64",
        is_stable="bool",
    )
    yield from _forms(
        "chlo.scan",
        "<scan>",
        "dimension scan_dim_size is_reverse is_associative operandSegmentSizes resultSegmentSizes",
        {"is_reverse": False},
    )


_SHARDINGS = "text:#sdy.sharding_per_value<~>"


def _shardy() -> Iterator[tuple[str, Form]]:
    yield from _forms("sdy.mesh", "$sym_name = $mesh {}", sym_name="symbol_name", mesh="text:#sdy.mesh~")
    yield from _forms("sdy.constant", "<constant>", "value")
    yield from _forms(
        "sdy.sharding_constraint sdy.reshard", "%input $sharding {} : <same>", sharding="text:#sdy.sharding~"
    )
    yield from _forms(
        "sdy.manual_computation",
        "( %tensors* ) in_shardings ~ = ~ $in_shardings out_shardings ~ = ~ $out_shardings "
        "manual_axes ~ = ~ $manual_axes <body> {} : <function>",
        in_shardings=_SHARDINGS,
        out_shardings=_SHARDINGS,
        manual_axes="text:#sdy<manual_axes~>",
    )
    yield from _forms(
        "sdy.named_computation",
        "< $name > ~ ( %operands* ) (? in_shardings ~ = ~ $in_shardings ?) (? out_shardings ~ = ~ $out_shardings ?) "
        "<body> {} : <function>",
        name="string",
        in_shardings=_SHARDINGS,
        out_shardings=_SHARDINGS,
    )
    yield from _forms("sdy.return", "%results* {} (? : <operands> ?)")
    yield from _forms(
        "sdy.propagation_barrier",
        "%input allowed_direction ~ = ~ $allowed_direction {} : <same>",
        allowed_direction="word:NONE,FORWARD,BACKWARD,BOTH",
    )
    yield from _forms(
        "sdy.sharding_group", "%input group_id ~ = ~ $group_id {} : <operand>", group_id="integer:i64"
    )  # fmt: skip


def _others() -> Iterator[tuple[str, Form]]:
    yield from _forms("builtin.module", "<module>", "sym_name sym_visibility")
    yield from _forms(
        "func.func", "<func>", "arg_attrs function_type no_inline res_attrs sym_name sym_visibility"
    )  # fmt: skip
    yield from _forms(
        "func.call", "$callee ( %operands* ) {} : <function>", "arg_attrs no_inline res_attrs", callee="symbol"
    )
    yield from _forms("func.return", "{} (? %operands* : <operands> ?)")
    yield from _forms("check.expect_eq_const", "%lhs , <checked_literal> {}")
    yield from _forms(
        "check.expect_almost_eq_const", "%lhs , <checked_literal> (? , tolerance = $tolerance ?) {}", tolerance="float"
    )
    yield from _forms("check.expect_eq", "%lhs , %rhs {} : <operand>")
    yield from _forms(
        "check.expect_almost_eq", "%lhs , %rhs (? , tolerance = $tolerance ?) {} : <operand>", tolerance="float"
    )
    yield from _forms(
        "check.expect_close",
        "%actual , %expected , max_ulp_difference = $max_ulp_difference (? , min_ulp_difference = $min_ulp_difference "
        "?) : {} <operands>",
        max_ulp_difference="integer:ui64",
        min_ulp_difference="integer:ui64",
    )
    yield from _forms(
        "check.expect_serialized_eq",
        "%expected , probe_id = $probe_id (? , iter = $iteration ?) {} : <operand>",
        probe_id="string",
        iteration="integer:ui32",
    )
    yield from _forms("interpreter.probe", "%operand , probe_id = $probe_id {} : <same>", probe_id="string")
    yield from _forms("interpreter.print", "%operand {} : <operand>")
    yield from _forms("interpreter.run_parallel", "", "programs infeed")


FORMS: dict[str, Form] = {name: form for table in (_stablehlo(), _chlo(), _shardy(), _others()) for name, form in table}
"""The forms of all operations, by their full names."""
