"""The primitives that equations of jaxprs name, as JAX's `lax` offers them: for interpreters that key on them.

Each is one object (`hloom/jaxpr/primitives.py`); the function that it binds is loaded at its first use.
"""

from __future__ import annotations

from ..jaxpr.primitives import primitive_named

__all__ = [
    "abs_p",
    "acos_p",
    "acosh_p",
    "add_p",
    "after_all_p",
    "all_gather_p",
    "all_to_all_p",
    "and_p",
    "approx_top_k_p",
    "argmax_p",
    "argmin_p",
    "asin_p",
    "asinh_p",
    "atan2_p",
    "atan_p",
    "atanh_p",
    "axis_index_p",
    "bessel_i0e_p",
    "bessel_i1e_p",
    "bitcast_convert_type_p",
    "broadcast_in_dim_p",
    "cbrt_p",
    "ceil_p",
    "clamp_p",
    "clz_p",
    "complex_p",
    "concatenate_p",
    "cond_p",
    "conj_p",
    "conv_general_dilated_p",
    "convert_element_type_p",
    "copy_p",
    "cos_p",
    "cosh_p",
    "create_token_p",
    "cumlogsumexp_p",
    "cummax_p",
    "cummin_p",
    "cumprod_p",
    "cumsum_p",
    "dce_sink_p",
    "device_put_p",
    "digamma_p",
    "div_p",
    "dot_general_p",
    "dynamic_slice_p",
    "dynamic_update_slice_p",
    "eq_p",
    "eq_to_p",
    "erf_inv_p",
    "erf_p",
    "erfc_p",
    "exp2_p",
    "exp_p",
    "expm1_p",
    "fft_p",
    "floor_p",
    "gather_p",
    "ge_p",
    "gt_p",
    "igamma_grad_a_p",
    "igamma_p",
    "igammac_p",
    "imag_p",
    "integer_pow_p",
    "iota_p",
    "is_finite_p",
    "le_p",
    "le_to_p",
    "lgamma_p",
    "linear_solve_p",
    "log1p_p",
    "log_p",
    "logistic_p",
    "lt_p",
    "lt_to_p",
    "max_p",
    "min_p",
    "mul_p",
    "mulhi_p",
    "ne_p",
    "neg_p",
    "nextafter_p",
    "not_p",
    "optimization_barrier_p",
    "or_p",
    "pad_p",
    "pmax_p",
    "pmin_p",
    "polygamma_p",
    "population_count_p",
    "pow_p",
    "ppermute_p",
    "psum_p",
    "ragged_all_to_all_p",
    "real_p",
    "reduce_and_p",
    "reduce_max_p",
    "reduce_min_p",
    "reduce_or_p",
    "reduce_p",
    "reduce_precision_p",
    "reduce_prod_p",
    "reduce_sum_p",
    "reduce_window_max_p",
    "reduce_window_min_p",
    "reduce_window_p",
    "reduce_window_sum_p",
    "reduce_xor_p",
    "regularized_incomplete_beta_p",
    "rem_p",
    "reshape_p",
    "rev_p",
    "rng_bit_generator_p",
    "rng_uniform_p",
    "round_p",
    "rsqrt_p",
    "scan_p",
    "scatter_add_p",
    "scatter_max_p",
    "scatter_min_p",
    "scatter_mul_p",
    "scatter_p",
    "scatter_sub_p",
    "select_and_gather_add_p",
    "select_and_scatter_add_p",
    "select_and_scatter_p",
    "select_n_p",
    "sharding_constraint_p",
    "shift_left_p",
    "shift_right_arithmetic_p",
    "shift_right_logical_p",
    "sign_p",
    "sin_p",
    "sinh_p",
    "slice_p",
    "sort_p",
    "split_p",
    "sqrt_p",
    "square_p",
    "squeeze_p",
    "stack_p",
    "stage_p",
    "stop_gradient_p",
    "sub_p",
    "tan_p",
    "tanh_p",
    "tile_p",
    "top_k_p",
    "transpose_p",
    "unstack_p",
    "while_p",
    "xor_p",
    "zeta_p",
]

abs_p = primitive_named("abs")
acos_p = primitive_named("acos")
acosh_p = primitive_named("acosh")
add_p = primitive_named("add")
after_all_p = primitive_named("after_all")
all_gather_p = primitive_named("all_gather")
all_to_all_p = primitive_named("all_to_all")
and_p = primitive_named("and")
approx_top_k_p = primitive_named("approx_top_k")
argmax_p = primitive_named("argmax")
argmin_p = primitive_named("argmin")
asin_p = primitive_named("asin")
asinh_p = primitive_named("asinh")
atan2_p = primitive_named("atan2")
atan_p = primitive_named("atan")
atanh_p = primitive_named("atanh")
axis_index_p = primitive_named("axis_index")
bessel_i0e_p = primitive_named("bessel_i0e")
bessel_i1e_p = primitive_named("bessel_i1e")
bitcast_convert_type_p = primitive_named("bitcast_convert_type")
broadcast_in_dim_p = primitive_named("broadcast_in_dim")
cbrt_p = primitive_named("cbrt")
ceil_p = primitive_named("ceil")
clamp_p = primitive_named("clamp")
clz_p = primitive_named("clz")
complex_p = primitive_named("complex")
concatenate_p = primitive_named("concatenate")
cond_p = primitive_named("cond")
conj_p = primitive_named("conj")
conv_general_dilated_p = primitive_named("conv_general_dilated")
convert_element_type_p = primitive_named("convert_element_type")
copy_p = primitive_named("copy")
cos_p = primitive_named("cos")
cosh_p = primitive_named("cosh")
create_token_p = primitive_named("create_token")
cumlogsumexp_p = primitive_named("cumlogsumexp")
cummax_p = primitive_named("cummax")
cummin_p = primitive_named("cummin")
cumprod_p = primitive_named("cumprod")
cumsum_p = primitive_named("cumsum")
dce_sink_p = primitive_named("dce_sink")
device_put_p = primitive_named("device_put")
digamma_p = primitive_named("digamma")
div_p = primitive_named("div")
dot_general_p = primitive_named("dot_general")
dynamic_slice_p = primitive_named("dynamic_slice")
dynamic_update_slice_p = primitive_named("dynamic_update_slice")
eq_p = primitive_named("eq")
eq_to_p = primitive_named("eq_to")
erf_inv_p = primitive_named("erf_inv")
erf_p = primitive_named("erf")
erfc_p = primitive_named("erfc")
exp2_p = primitive_named("exp2")
exp_p = primitive_named("exp")
expm1_p = primitive_named("expm1")
fft_p = primitive_named("fft")
floor_p = primitive_named("floor")
gather_p = primitive_named("gather")
ge_p = primitive_named("ge")
gt_p = primitive_named("gt")
igamma_grad_a_p = primitive_named("igamma_grad_a")
igamma_p = primitive_named("igamma")
igammac_p = primitive_named("igammac")
imag_p = primitive_named("imag")
integer_pow_p = primitive_named("integer_pow")
iota_p = primitive_named("iota")
is_finite_p = primitive_named("is_finite")
le_p = primitive_named("le")
le_to_p = primitive_named("le_to")
lgamma_p = primitive_named("lgamma")
linear_solve_p = primitive_named("custom_linear_solve")
log1p_p = primitive_named("log1p")
log_p = primitive_named("log")
logistic_p = primitive_named("logistic")
lt_p = primitive_named("lt")
lt_to_p = primitive_named("lt_to")
max_p = primitive_named("max")
min_p = primitive_named("min")
mul_p = primitive_named("mul")
mulhi_p = primitive_named("mulhi")
ne_p = primitive_named("ne")
neg_p = primitive_named("neg")
nextafter_p = primitive_named("nextafter")
not_p = primitive_named("not")
optimization_barrier_p = primitive_named("optimization_barrier")
or_p = primitive_named("or")
pad_p = primitive_named("pad")
pmax_p = primitive_named("pmax")
pmin_p = primitive_named("pmin")
polygamma_p = primitive_named("polygamma")
population_count_p = primitive_named("population_count")
pow_p = primitive_named("pow")
ppermute_p = primitive_named("ppermute")
psum_p = primitive_named("psum")
ragged_all_to_all_p = primitive_named("ragged_all_to_all")
real_p = primitive_named("real")
reduce_and_p = primitive_named("reduce_and")
reduce_max_p = primitive_named("reduce_max")
reduce_min_p = primitive_named("reduce_min")
reduce_or_p = primitive_named("reduce_or")
reduce_p = primitive_named("reduce")
reduce_precision_p = primitive_named("reduce_precision")
reduce_prod_p = primitive_named("reduce_prod")
reduce_sum_p = primitive_named("reduce_sum")
reduce_window_max_p = primitive_named("reduce_window_max")
reduce_window_min_p = primitive_named("reduce_window_min")
reduce_window_p = primitive_named("reduce_window")
reduce_window_sum_p = primitive_named("reduce_window_sum")
reduce_xor_p = primitive_named("reduce_xor")
regularized_incomplete_beta_p = primitive_named("regularized_incomplete_beta")
rem_p = primitive_named("rem")
reshape_p = primitive_named("reshape")
rev_p = primitive_named("rev")
rng_bit_generator_p = primitive_named("rng_bit_generator")
rng_uniform_p = primitive_named("rng_uniform")
round_p = primitive_named("round")
rsqrt_p = primitive_named("rsqrt")
scan_p = primitive_named("scan")
scatter_add_p = primitive_named("scatter-add")
scatter_max_p = primitive_named("scatter-max")
scatter_min_p = primitive_named("scatter-min")
scatter_mul_p = primitive_named("scatter-mul")
scatter_p = primitive_named("scatter")
scatter_sub_p = primitive_named("scatter-sub")
select_and_gather_add_p = primitive_named("select_and_gather_add")
select_and_scatter_add_p = primitive_named("select_and_scatter_add")
select_and_scatter_p = primitive_named("select_and_scatter")
select_n_p = primitive_named("select_n")
sharding_constraint_p = primitive_named("sharding_constraint")
shift_left_p = primitive_named("shift_left")
shift_right_arithmetic_p = primitive_named("shift_right_arithmetic")
shift_right_logical_p = primitive_named("shift_right_logical")
sign_p = primitive_named("sign")
sin_p = primitive_named("sin")
sinh_p = primitive_named("sinh")
slice_p = primitive_named("slice")
sort_p = primitive_named("sort")
split_p = primitive_named("split")
sqrt_p = primitive_named("sqrt")
square_p = primitive_named("square")
squeeze_p = primitive_named("squeeze")
stack_p = primitive_named("stack")
stage_p = primitive_named("stage")
stop_gradient_p = primitive_named("stop_gradient")
sub_p = primitive_named("sub")
tan_p = primitive_named("tan")
tanh_p = primitive_named("tanh")
tile_p = primitive_named("tile")
top_k_p = primitive_named("top_k")
transpose_p = primitive_named("transpose")
unstack_p = primitive_named("unstack")
while_p = primitive_named("while")
xor_p = primitive_named("xor")
zeta_p = primitive_named("zeta")
