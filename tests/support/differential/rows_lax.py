"""The rows of `hloom.lax`, `lax.linalg`, `nn`, `random`, `ops` and `image`."""

from __future__ import annotations

from .rows_numpy import Lines

LAX: Lines = (
    ("x", "slice:middle broadcast_in_dim:front reduce:sum"),
    ("x1 k", "dynamic_slice:one dynamic_update_slice:one dynamic_update_slice_in_dim:one"),
    ("x3 {SAME|VALID}", "conv:of conv_transpose:of conv_general_dilated_patches:of"),
    ("x3", "conv_with_general_padding:of"),
    ("x1 index", "scatter_add:rows"),
    ("positive", "custom_root:square"),
    (
        "x",
        "abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e bitwise_not cbrt ceil clz conj cos cosh digamma "
        "erf erf_inv erfc exp exp2 expm1 floor imag is_finite lgamma log log1p logistic neg population_count real "
        "reciprocal rsqrt sign sin sinh sqrt square stop_gradient tan tanh optimization_barrier dtype shape_as_value",
    ),
    ("x {0|1}", "round"),
    ("x {-2|-1|0|1|2|3|5}", "integer_pow"),
    ("x {5|8}  {10|7|2}", "reduce_precision"),
    (
        "x S",
        "add atan2 bitwise_and bitwise_or bitwise_xor complex div eq ge gt le lt max min mul ne nextafter pow rem "
        "shift_left shift_right_arithmetic shift_right_logical sub mulhi",
    ),
    ("x y", "add mul sub div max min pow rem eq lt atan2 broadcast_like"),
    ("x scalar", "add mul sub div max pow"),
    ("positive positive_s", "igamma igammac igamma_grad_a random_gamma_grad pow atan2"),
    ("positive positive_s unit_s", "betainc"),
    ("positive positive_s", "zeta"),
    ("n positive", "polygamma"),
    ("x S S", "clamp:same"),
    ("scalar x scalar", "clamp"),
    ("x dtype", "convert_element_type bitcast_convert_type"),
    ("x la reverse?b", "cumsum cumprod cummax cummin cumlogsumexp"),
    ("x laxes", "reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor rev"),
    ("x axes", "expand_dims squeeze"),
    ("x1 la :'int32'", "argmax argmin"),
    ("x la", "sort rev:axis"),
    ("x1 dimension?la is_stable?b", "sort"),
    ("v s", "sort_key_val dot"),
    ("x1 {1|2}", "top_k approx_max_k approx_min_k"),
    ("x permutation", "transpose"),
    ("x newshape", "reshape"),
    ("x {(2,)|(1,3)|()}", "broadcast"),
    ("x n", "broadcast_to_rank"),
    ("[x] la", "concatenate"),
    ("[x]", "stack"),
    ("x3 n1 :3", "collapse"),
    ("x1 k n axis?a", "dynamic_slice_in_dim"),
    ("x1 k axis?a keepdims?b", "dynamic_index_in_dim"),
    ("x1 k axis?{0|-1} keepdims?b", "index_in_dim"),
    ("x1 {None|0|1|-1} {None|2|-1|9} {1|2} axis?{0|-1}", "slice_in_dim"),
    ("x1 {1|2}", "tile:all split:two"),
    ("x1 la", "unstack"),
    ("m S", "select_n:same"),
    ("x1 scalar k :0", "dynamic_update_index_in_dim:at"),
    ("x S", "select:of"),
    ("dtype n", "iota"),
    ("dtype {(2,3)|(3,1,2)} {0|1}", "broadcasted_iota"),
    ("shape scalar dtype?dtype", "full"),
    ("x scalar dtype?dtype shape?shape", "full_like"),
    ("x {(1,0,0)|(0,2,1)|(-1,1,0)|(2,-1,2)}", "pad:all"),
    ("x3 x3", "batch_matmul"),
    ("matrix mm", "dot"),
    ("x3 S", "dot_general:batch"),
    ("x3 {SAME|VALID}", "conv_general_dilated:line conv_general_dilated:strided"),
    ("m {add|max|min|mul} {(2,2)|(1,3)} {(1,1)|(2,1)} {SAME|VALID}", "reduce_window:plane"),
    ("x {FFT|IFFT}", "fft:last"),
    ("x1 index", "gather:rows gather:filled"),
    ("x1 index {add|set|max|min|mul|sub}", "scatter:rows"),
    ("x1", "scan:sum scan:reversed associative_scan:add map:square while_loop:double fori_loop:add"),
    ("x1", "cond:all switch:three"),
    ("counts", "fori_loop:traced"),
)

LAX_LINALG: Lines = (
    ("spd rhs", "cholesky_update:one symmetric_product:of"),
    ("square", "householder_product:of"),
    ("spd symmetrize_input?b", "cholesky"),
    ("hermitian lower?b", "eigh"),
    ("square", "eig lu hessenberg schur"),
    ("matrix full_matrices?b", "qr"),
    ("matrix full_matrices?b compute_uv?b", "svd"),
    ("matrix", "lu qdwh"),
    ("square rhs left_side=:True lower?b unit_diagonal?b transpose_a?b conjugate_a?b", "triangular_solve"),
    ("hermitian", "tridiagonal"),
)

NN: Lines = (
    ("m is_causal?b", "dot_product_attention:of"),
    (
        "x",
        "celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log1mexp log_sigmoid mish relu "
        "relu6 selu sigmoid silu soft_sign softplus sparse_plus sparse_sigmoid squareplus swish tanh logsumexp",
    ),
    ("x approximate=b", "gelu"),
    ("x p", "celu elu leaky_relu squareplus"),
    ("x1 axis?a", "softmax log_softmax standardize glu"),
    ("x1 axis?a where=mask", "softmax log_softmax"),
    ("x1 axis?A keepdims?b", "logsumexp logmeanexp"),
    ("x1 axis?A keepdims?b where=mask", "logsumexp logmeanexp"),
    ("x1 axis?A b=s return_sign?b", "logsumexp"),
    ("index_plain n1 dtype?dtype axis?:-1", "one_hot"),
)

RANDOM: Lines = (
    ("key spd rhs", "multivariate_normal:of"),
    ("key n1", "multinomial:of"),
    ("{0|1|-1|123456}", "key PRNGKey"),
    ("key", "split clone key_data bits uniform normal exponential cauchy gumbel laplace logistic rademacher"),
    ("key", "maxwell double_sided_maxwell rayleigh:half"),
    ("key n", "fold_in split"),
    ("key shape dtype?fdtype", "uniform normal exponential cauchy gumbel laplace logistic maxwell rademacher"),
    ("key shape {uint8|uint16|uint32}", "bits"),
    ("key shape k n1 dtype?{int32|int8|uint8|int16}", "randint"),
    ("key float01 shape?shape", "bernoulli geometric"),
    ("key {4|7} shape?shape replace?b", "choice:of"),
    ("key x1 axis?a independent?b", "permutation"),
    ("key {1|5|16}", "permutation"),
    ("key positive", "gamma loggamma chisquare t pareto rayleigh poisson dirichlet:last"),
    ("key positive positive_s", "beta f weibull_min"),
    ("key x1 axis?a", "categorical"),
    ("key {-2.0|-0.5} {1.0|3.0} shape?shape", "truncated_normal uniform:between"),
    ("key {2|3} shape?shape", "orthogonal ball"),
    ("key positive", "wald lognormal generalized_normal"),
    ("key n1 unit", "binomial"),
    ("key :-1.0 :0.5 :2.0 shape?shape", "triangular"),
)

OPS: Lines = (
    ("x1 segments num_segments?n1 indices_are_sorted?:False", "segment_sum segment_prod segment_max segment_min"),
    ("x1 segments num_segments=n1 mode?{clip|drop}", "segment_sum segment_max"),
)

IMAGE: Lines = (
    ("m p {linear|cubic|lanczos3}", "scale_and_translate:of"),
    ("m {(4,6)|(2,2)|(1,7)} {nearest|linear|cubic|lanczos3|lanczos5} antialias?b", "resize"),
)
