"""jax.nn, jax.nn.initializers, jax.image, jax.ops."""

from __future__ import annotations

from functools import partial

import numpy as np

from .cases import bf16, case, cases, f16, f32, f64, key, positive, s32, u32

nn = partial(cases, within="nn")

ACTIVATIONS = """celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log_sigmoid mish relu
relu6 selu sigmoid silu soft_sign softplus sparse_plus sparse_sigmoid squareplus swish tanh"""
nn(ACTIVATIONS, f32(4, 9, low=-5, high=5))
nn("gelu silu softplus", bf16(9), label="bf16")
nn("gelu sigmoid relu6", f16(9), label="f16")
nn("gelu mish", f64(9), label="f64")
case("nn.gelu", f32(9), label="exact", approximate=False)
nn("glu softmax log_softmax logsumexp standardize logmeanexp", f32(3, 8), axis=-1)
nn("softmax", bf16(3, 8), label="bf16")
case("nn.log1mexp", positive(9))
case("nn.one_hot", s32(5), num_classes=4)
case("nn.dot_product_attention", f32(2, 5, 2, 4), f32(2, 6, 2, 4), f32(2, 6, 2, 4))
case("nn.dot_product_attention", bf16(1, 4, 2, 4), bf16(1, 4, 2, 4), bf16(1, 4, 2, 4), label="causal", is_causal=True)
case(
    "nn.dot_product_attention",
    f32(1, 4, 4, 2),
    f32(1, 4, 2, 2),
    f32(1, 4, 2, 2),
    label="grouped",
    local_window_size=(1, 1),
)

RANDOM = """glorot_normal glorot_uniform he_normal he_uniform lecun_normal lecun_uniform normal orthogonal
truncated_normal uniform"""
for name in RANDOM.split():
    case(f"nn.initializers.{name}", key(3), call=lambda f, k: f()(k, (3, 4)))
case("nn.initializers.zeros", key(), shape=(2, 3))
case("nn.initializers.ones", key(), shape=(2, 3))
case("nn.initializers.constant", key(), call=lambda f, k: f(2.5)(k, (2, 3)))
case("nn.initializers.delta_orthogonal", key(), call=lambda f, k: f()(k, (3, 2, 4)))
case("nn.initializers.variance_scaling", key(), call=lambda f, k: f(2.0, "fan_avg", "truncated_normal")(k, (3, 4)))

for method in ("nearest", "linear", "cubic", "lanczos3"):
    case("image.resize", f32(4, 5, 2), label=method, shape=(6, 3, 2), method=method)
case(
    "image.scale_and_translate", f32(4, 5), call=lambda f, x: f(
        x, (5, 4), (0, 1), np.array([1.5, 0.8], np.float32), np.array([0.2, -0.5], np.float32), "linear"),
)  # fmt: skip

ops = partial(cases, within="ops", num_segments=4)
ops("segment_sum segment_prod segment_max segment_min", f32(7, 2), s32(7, low=0, high=5))
ops("segment_sum", u32(7), s32(7, low=-1, high=4), label="u32")
