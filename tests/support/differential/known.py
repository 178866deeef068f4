"""Functions without a row, calls that NumPy answers in another way, and differences from JAX that have a reason."""

from __future__ import annotations

NO_ROW: dict[str, str] = {
    "numpy": (
        "array_repr array_str einsum_path fix from_dlpack frombuffer fromfile fromiter frompyfunc fromstring "
        "get_printoptions issubdtype load mask_indices printoptions save savez set_printoptions "
        "minmax top_k"  # in neither NumPy nor JAX 0.10: tests/compatibility/test_names_of_jax_0_12.py
    ),
    "lax": (
        "DotDimensionNumbers all_gather all_to_all axis_index axis_size broadcast_shapes "
        "conv_dimension_numbers conv_general_dilated_local conv_general_permutations conv_general_shape_tuple "
        "conv_shape_tuple conv_transpose_shape_tuple custom_linear_solve empty index_take padtype_to_pads "
        "pbroadcast pcast platform_dependent pmax pmean pmin ppermute pshuffle psum psum_scatter pswapaxes "
        "ragged_dot ragged_dot_general reduce_window_shape_tuple rng_bit_generator rng_uniform scaled_dot "
        "scatter_apply scatter_max scatter_min scatter_mul scatter_sub with_sharding_constraint "
        "after_all composite create_token dce_sink ragged_all_to_all stage "
        "log2 one_minus_square polynomial"
    ),
    "lax.linalg": "lu_pivots_to_permutation ormqr tridiagonal_solve",
    "nn": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
    "random": "Key key_dtype key_impl wrap_key_data",
    "scipy.special": "erfcinv lpmn_values sph_harm_y",
    "scipy.linalg": "funm",
    "scipy.signal": "istft",
}
"""Files, printing, settings, collectives, and what the rows of other names hold (scatter_max: scatter:rows)."""
NOT_NUMPY: dict[str, str] = {
    "numpy": "reciprocal spacing empty_like floor_divide argpartition unique_values sinc histogram2d",
    "numpy.linalg": "eig",
    "lax": "broadcast div rem reciprocal",
    "scipy.linalg": "block_diag cho_factor",
    "scipy.special": "kl_div poch hyp2f1",
    "scipy.stats.gennorm": "pdf",
    "scipy.stats.gumbel_r": "pdf",
}
"""NumPy answers in another way, or in other words: integers divided by 0, the sign of vectors, the order of equals,
shapes; or the number is lost in rounding in the dtype, as in JAX."""
KNOWN: tuple[tuple[str, str, str, str], ...] = (
    ("scipy.linalg", "svd", "differences", "vectors of complex matrices are unique up to a phase"),
    ("scipy.stats.bernoulli", "pmf", "types", "an integer array and a Python number give a weak type"),
    ("scipy.stats.geom", "logpmf", "types", "an integer array and a Python number give a weak type"),
    ("scipy.stats.beta", "cdf", "errors: a result", "derivatives in the parameters exist here"),
    ("nn", "logsumexp", "grad: values", "of terms with an infinite factor beside a zero"),
    ("numpy.linalg", "matrix_rank", "values", "rtol is relative to the largest singular value, as in NumPy"),
    ("numpy", "split array_split", "errors: a result", "places beyond the end are allowed, as in NumPy"),
    ("nn", "silu swish mish", "errors: a result", "integers become floats"),
    ("scipy.special", "ndtr ndtri log_ndtr spence", "errors: a result", "all dtypes become floats"),
    ("lax.linalg", "schur", "errors: a result", "integers become floats"),
    ("scipy.linalg", "rsf2csf:schur", "takes one matrix", "as its documentation says"),
)
"""(namespace, functions, a part of the text, the reason)."""
