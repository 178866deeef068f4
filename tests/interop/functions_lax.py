"""jax.lax: elementwise, movement, reductions and windows, convolutions, gather and scatter, sorting."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .cases import (
    bf16,
    c64,
    c128,
    case,
    cases,
    f16,
    f32,
    f64,
    positive,
    pred,
    s8,
    s16,
    s32,
    u8,
    u16,
    u32,
    u64,
    unit,
)

lax = partial(cases, within="lax")

# Elementwise

lax(
    "abs neg sign floor ceil round sin cos tan sinh cosh tanh asinh atan exp exp2 expm1 cbrt logistic erf erfc", f32(17)
)
lax("acos asin atanh erf_inv", f32(17, low=-0.95, high=0.95))
lax("log log1p sqrt rsqrt reciprocal square lgamma digamma bessel_i0e bessel_i1e is_finite", positive(17))
lax("acosh", f32(9, low=1.1, high=9))
lax("lgamma digamma erf_inv", f64(9, low=0.1, high=0.9), label="f64")
lax("erf erfc lgamma rsqrt logistic", bf16(9, low=0.1), label="bf16")
lax("erf logistic tan", f16(9), label="f16")
lax("conj real imag tan logistic rsqrt sign expm1 log1p", c64(9), label="c64")
lax("exp log tanh sqrt sin", c128(3), label="c128")
case("lax.pow", c128(3), c128(3), label="c128")
case("lax.round", f32(9, low=-9, high=9), label="even", call=lambda f, x: f(x * 0 + x.round(0) / 2, rounding_method=1))
lax("clz population_count bitwise_not", u32(9, high=2**31))
lax("clz population_count", u8(9, high=256), label="u8")
lax("clz population_count", np.array([0, 1, -1, 2**62], np.int64), label="s64")
lax("add sub mul div max min atan2 nextafter eq ne lt le gt ge rem", f32(9), positive(9))
lax("div rem", s32(9), s32(9, low=1), label="s32")
lax("div rem", np.array([7, -7, -128, 5], np.int8), np.array([0, 0, -1, -2], np.int8), label="by-zero")
lax("pow igamma igammac igamma_grad_a random_gamma_grad zeta", f32(9, low=1.2, high=5), positive(9))
lax("polygamma", np.array([0.0, 1, 2, 3], np.float32), positive(4))
case("lax.betainc", positive(9), positive(9), unit(9))
case("lax.integer_pow", f32(9), y=-3)
case("lax.pow", f32(6), s32(6), label="integer")
lax("bitwise_and bitwise_or bitwise_xor", u16(9), u16(9))
lax("shift_left shift_right_arithmetic shift_right_logical", s32(9), s32(9, low=0, high=31))
lax(
    "shift_left shift_right_arithmetic shift_right_logical",
    s8(6),
    np.array([0, 3, 7, 8, 100, -1], np.int8),
    label="beyond",
)
case("lax.mulhi", u32(9, high=2**31), u32(9, high=2**31))
case("lax.complex", f32(5), f32(5))
case("lax.clamp", f32(), f32(9), f32(), call=lambda f, a, x, b: f(a, x, a + 1))
case("lax.select", pred(3, 4), f32(3, 4), f32(3, 4))
case("lax.select_n", s32(5, low=0, high=3), f32(5), f32(5), f32(5))
case(
    "lax.nextafter",
    np.array([0.0, 1, np.inf, -1], np.float32),
    np.array([1.0, 1, 0, np.nan], np.float32),
    label="special",
)
case("lax.reduce_precision", f32(9), exponent_bits=5, mantissa_bits=7)
TYPES = ["int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32", "complex64", "bool"]
for wanted in TYPES:
    case("lax.convert_element_type", f32(9, low=-300, high=300), label=f"f32-{wanted}", new_dtype=wanted)
    case("lax.convert_element_type", s32(9, low=-70000, high=70000), label=f"s32-{wanted}", new_dtype=wanted)
for wanted in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "int4", "uint4"):
    there_and_back = partial(lambda wanted, f, x: f(f(x, wanted), np.float32), wanted)
    case("lax.convert_element_type", f32(9, low=-7, high=7), label=f"f32-{wanted}", call=there_and_back)
case("lax.bitcast_convert_type", f32(5), new_dtype=np.int32)
case("lax.bitcast_convert_type", u32(5, high=2**31), label="narrower", new_dtype=np.uint8)
case("lax.bitcast_convert_type", u16(3, 2, high=2**16), label="wider", new_dtype=np.float32)
lax("optimization_barrier stop_gradient dce_sink", f32(3), call=lambda f, x: (f(x), x)[1] if "sink" in str(f) else f(x))

# Movement

case("lax.broadcast", f32(3), sizes=(2, 4))
case("lax.broadcast_in_dim", f32(3, 1), shape=(2, 3, 4), broadcast_dimensions=(1, 2))
case("lax.broadcast_to_rank", f32(3), rank=3)
case("lax.broadcasted_iota", call=lambda f: f(np.uint8, (3, 4), 1))
case("lax.iota", call=lambda f: f(np.float32, 5))
case("lax.collapse", f32(2, 3, 4), start_dimension=1, stop_dimension=3)
case("lax.concatenate", [f32(2, 3), f32(2, 1)], dimension=1)
case("lax.expand_dims", f32(3), dimensions=(0, 2))
lax("full", call=lambda f: f((2, 3), 1.5))
lax("empty", call=lambda f: f((2, 3), np.float32) * 0)
case("lax.full_like", s16(3), fill_value=4)
case("lax.pad", f32(3, 4), np.float32(9), padding_config=[(1, -1, 2), (-1, 2, 0)])
case("lax.pad", u8(5), np.uint8(3), label="u8", padding_config=[(-2, 3, 1)])
case("lax.reshape", f32(2, 3, 4), new_sizes=(4, 6), dimensions=(2, 0, 1))
case("lax.rev", f32(2, 3, 4), dimensions=(0, 2))
case("lax.slice", f32(7, 8), start_indices=(1, 0), limit_indices=(6, 8), strides=(2, 3))
case("lax.slice_in_dim", f32(7, 2), start_index=-5, limit_index=-1)
case("lax.index_in_dim", f32(3, 4), index=1, axis=1)
case("lax.split", f32(7), sizes=(2, 0, 5))
case("lax.squeeze", f32(1, 3, 1), dimensions=(0,))
case("lax.stack", [f32(3), f32(3)], axis=1)
case("lax.unstack", f32(2, 3), axis=0)
case("lax.tile", f32(2, 3), reps=(2, 1))
case("lax.transpose", c64(2, 3, 4), permutation=(1, 2, 0))
case("lax.dynamic_slice", f32(5, 6), s32(low=-9), s32(low=-9), call=lambda f, x, i, j: f(x, (i, j), (2, 3)))
case("lax.dynamic_slice_in_dim", f32(5, 6), s32(low=0), slice_size=3, axis=1)
case("lax.dynamic_index_in_dim", f32(5, 6), u8(), axis=0, keepdims=False)
case("lax.dynamic_update_slice", f32(5, 6), f32(2, 2), s32(), s32(), call=lambda f, x, u, i, j: f(x, u, (i, j)))
case("lax.dynamic_update_slice_in_dim", f32(5, 6), f32(5, 2), s32(), axis=1)
case("lax.dynamic_update_index_in_dim", f32(5, 6), f32(6), s32(), axis=0)

# Reductions and windows

lax("reduce_sum reduce_prod reduce_max reduce_min", f32(3, 4, 2), axes=(0, 2))
lax("reduce_and reduce_or reduce_xor", u16(3, 40, high=2**16), axes=(1,))
lax("reduce_and reduce_or reduce_xor", pred(3, 4), axes=(1,), label="pred")
lax("argmax argmin", bf16(3, 5), axis=1, index_dtype=np.int16)


def argmin_by_hand(reduce: Any, x: Any, i: Any) -> Any:
    def less(a: Any, b: Any) -> Any:
        from jax import numpy as jnp

        wins = (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return jnp.where(wins, a[0], b[0]), jnp.where(wins, a[1], b[1])

    return reduce((x, i), (np.float32(np.inf), np.int32(2**31 - 1)), less, (1,))


case("lax.reduce", f32(3, 7), s32(3, 7), call=argmin_by_hand, label="pair")
case(
    "lax.reduce", f32(3, 7), call=lambda f, x: f(x, np.float32(1), lambda a, b: a + b + a * b * 0.25, (0,)), label="any"
)
lax("cumsum cumprod cummax cummin cumlogsumexp", f32(3, 7), axis=1)
lax("cumsum cummax", s32(9), reverse=True, label="reverse")


def window(operation: str, *window: Any) -> Any:
    def call(reduce_window: Any, x: Any) -> Any:
        from jax import lax

        identity = {"add": 0, "max": -np.inf, "min": np.inf, "mul": 1}[operation]
        return reduce_window(x, np.asarray(identity, x.dtype), getattr(lax, operation), *window)

    return call


case("lax.reduce_window", f32(1, 6, 7, 2), label="max", call=window("max", (1, 2, 3, 1), (1, 2, 2, 1), "VALID"))
case("lax.reduce_window", f32(1, 6, 7, 2), label="sum-same", call=window("add", (1, 3, 3, 1), (1, 2, 2, 1), "SAME"))
case(
    "lax.reduce_window", bf16(5, 6), label="dilated",
    call=window("min", (2, 2), (1, 2), ((1, 0), (2, 1)), (2, 1), (1, 3)),
)  # fmt: skip
case("lax.reduce_window", f64(9), label="product", call=window("mul", (3,), (2,), ((1, 1),)))
case("lax.top_k", f32(3, 9), k=4)
case("lax.top_k", s32(9, low=0, high=4), label="ties", k=9)
case("lax.top_k", bf16(2, 8), label="bf16", k=3)
lax("approx_max_k approx_min_k", f32(3, 20), k=4)
case("lax.sort", [f32(9), s32(9)], dimension=0, num_keys=1)
case("lax.sort", [s32(3, 7, low=0, high=3), s32(3, 7, low=0, high=3), f32(3, 7)], label="two-keys", num_keys=2)
case("lax.sort", u64(9), label="unstable", is_stable=False)
case("lax.sort_key_val", f32(9), s32(9))

# Products and convolutions

case("lax.dot", f32(3, 4), f32(4, 2))
case("lax.dot", s8(3, 4), s8(4, 2), label="s8-s32", preferred_element_type=np.int32)
case("lax.dot", bf16(3, 8), bf16(8, 2), label="bf16-f32", preferred_element_type=np.float32)
case("lax.dot", f32(3, 4), f32(4, 2), label="algorithm", precision="F32_F32_F32")
case("lax.dot_general", f32(2, 3, 4), f32(4, 2, 5), dimension_numbers=(((2,), (0,)), ((0,), (1,))))
case("lax.dot_general", f32(2, 3, 4), f32(3, 2), label="two", dimension_numbers=(((1, 0), (0, 1)), ((), ())))
case("lax.dot_general", f16(3, 4), f32(4), label="mixed", dimension_numbers=(((1,), (0,)), ((), ())))
case("lax.batch_matmul", f32(2, 3, 4), f32(2, 4, 2))
case("lax.ragged_dot", f32(6, 3), f32(2, 3, 4), np.array([4, 2], np.int32))
case("lax.scaled_dot", f32(1, 2, 64), f32(1, 64, 3), call=lambda f, a, b: f(a[0], b[0]))
case("lax.conv", f32(2, 3, 7, 6), f32(4, 3, 3, 2), window_strides=(2, 1), padding="SAME")
case(
    "lax.conv_with_general_padding",
    f32(1, 2, 6),
    f32(3, 2, 2),
    call=lambda f, x, w: f(x, w, (2,), [(1, -1)], (2,), (2,)),
)
conv = partial(case, "lax.conv_general_dilated")
conv(
    f32(2, 6, 5, 3),
    f32(2, 3, 3, 4),
    label="nhwc",
    window_strides=(1, 2),
    padding="VALID",
    dimension_numbers=("NHWC", "HWIO", "NHWC"),
)
conv(
    f32(5, 3, 2),
    f32(3, 4, 2),
    label="wcn",
    window_strides=(1,),
    padding=[(1, 1)],
    dimension_numbers=("WCN", "IOW", "CNW"),
)
conv(f32(1, 4, 6), f32(6, 2, 3), label="groups", window_strides=(1,), padding="SAME", feature_group_count=2)
conv(f32(4, 2, 6), f32(4, 2, 3), label="batch-groups", window_strides=(1,), padding="SAME", batch_group_count=2)
conv(f32(1, 3, 5, 5), f32(3, 1, 3, 3), label="depthwise", window_strides=(1, 1), padding="SAME", feature_group_count=3)
conv(f32(1, 2, 4, 3, 3), f32(2, 2, 2, 2, 2), label="3d", window_strides=(1, 1, 1), padding="VALID")
conv(f32(3, 4), f32(5, 4), label="0d", window_strides=(), padding=[])
conv(
    bf16(1, 2, 6), bf16(2, 2, 2), label="bf16-dilated",
    window_strides=(2,), padding=[(-1, 3)], lhs_dilation=(2,), rhs_dilation=(3,),
)  # fmt: skip
conv(c64(1, 2, 6), c64(2, 2, 3), label="c64", window_strides=(1,), padding="SAME")
conv(s8(1, 2, 6), s8(2, 2, 3), label="s8", window_strides=(1,), padding="SAME", preferred_element_type=np.int32)
case("lax.conv_transpose", f32(1, 4, 5, 2), f32(3, 3, 2, 3), strides=(2, 2), padding="SAME")
case("lax.conv_general_dilated_local", f32(1, 2, 5), f32(3, 4, 4), call=lambda f, x, w: f(x, w, (1,), "VALID", (2,)))
case("lax.conv_general_dilated_patches", f32(1, 2, 5, 4), filter_shape=(2, 3), window_strides=(1, 1), padding="SAME")

# Gather and scatter


def gather_numbers(**numbers: Any) -> Any:
    from jax import lax

    return lax.GatherDimensionNumbers(**numbers)


def scatter_numbers(**numbers: Any) -> Any:
    from jax import lax

    return lax.ScatterDimensionNumbers(**numbers)


for mode in ("clip", "fill", "promise_in_bounds"):
    inside = mode == "promise_in_bounds"
    case(
        "lax.gather",
        f32(5, 6),
        s32(3, 2, low=0 if inside else -3, high=4 if inside else 9),
        label=mode,
        call=lambda f, x, i, mode=mode: f(
            x, i, gather_numbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0, 1)), (1, 2), mode=mode
        ),
    )
case(
    "lax.gather", c64(3, 5, 4), s32(3, 2, 1, low=0, high=5), label="batching",
    call=lambda f, x, i: f(x, i, gather_numbers(
        offset_dims=(2,), collapsed_slice_dims=(1,), start_index_map=(1,),
        operand_batching_dims=(0,), start_indices_batching_dims=(0,)), (1, 1, 4), mode="clip"),
)  # fmt: skip
for name in ("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"):
    case(
        f"lax.{name}", f32(5, 6), s32(4, 1, low=-2, high=7), f32(4, 6),
        call=lambda f, x, i, u: f(x, i, u, scatter_numbers(
            update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)), mode="drop"),
    )  # fmt: skip
case(
    "lax.scatter_add", s32(3, 5, 4), s32(3, 2, 1, low=0, high=5), s32(3, 2, 4), label="batching",
    call=lambda f, x, i, u: f(x, i, u, scatter_numbers(
        update_window_dims=(2,), inserted_window_dims=(1,), scatter_dims_to_operand_dims=(1,),
        operand_batching_dims=(0,), scatter_indices_batching_dims=(0,))),
)  # fmt: skip
case(
    "lax.scatter_add", f32(6, 7), s32(2, low=0, high=6), f32(3, 3), label="window", call=lambda f, x, i, u: f(
        x, i, u, scatter_numbers(
            update_window_dims=(0, 1), inserted_window_dims=(), scatter_dims_to_operand_dims=(0, 1)),
        mode="clip"),
)  # fmt: skip
case(
    "lax.scatter_apply", f32(6), s32(3, 1, low=0, high=6), call=lambda f, x, i: f(
        x, i, lambda v: v * v, scatter_numbers(
            update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)), update_shape=(3,)),
)  # fmt: skip
case(
    "lax.index_take",
    f32(5, 6),
    s32(3, low=0, high=5),
    s32(3, low=0, high=6),
    call=lambda f, x, i, j: f(x, (i, j), (0, 1)),
)
