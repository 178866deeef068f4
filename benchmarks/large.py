"""Large programs, written as plain Python loops: deep networks, and integrators that are unrolled.

Tracing, passes, buffers and kernels must grow linearly with them. Each program has one text for hloom and JAX;
`startup.py` measures the first call, a step, another size and the memory, each in a new process.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .table.training import Model, bias, weight

f4 = np.float32
Params = dict[str, Any]


@dataclass(frozen=True)
class Integrator:
    """`steps` steps of `advance(jnp, state)`, one after the other. A state is a tuple of arrays, which
    `state(rng, size)` makes."""

    title: str
    steps: int
    advance: Callable[[Any, Any], Any]
    state: Callable[[np.random.Generator, int], tuple[Any, ...]]
    size: int

    def step(self, package: str) -> Callable[..., Any]:
        """The jitted (state) -> (state, its first array)."""
        jax, jnp = importlib.import_module(package), importlib.import_module(package + ".numpy")

        def run(state: Any) -> Any:
            for _ in range(self.steps):
                state = self.advance(jnp, state)
            return state, state[0]

        return jax.jit(run)  # type: ignore[no-any-return]

    def arguments(self, package: str, size: int) -> tuple[Any, ...]:
        """(state,) in the package's own arrays."""
        jnp = importlib.import_module(package + ".numpy")
        return (tuple([jnp.asarray(a) for a in self.state(np.random.default_rng(17), size)]),)


# ------------------------------------------------------------------------------------------------------- transformers

WIDTH, HEADS, LENGTH, WORDS, EXPERTS = 64, 4, 32, 64, 4


def _embedding(rng: np.random.Generator) -> Params:
    return {"table": weight(rng, WORDS, WIDTH), "places": weight(rng, LENGTH, WIDTH)}


def _attention_params(rng: np.random.Generator, k: int) -> Params:
    return {
        f"scale{k}": np.ones(WIDTH, f4), f"qkv{k}": weight(rng, WIDTH, 3 * WIDTH), f"out{k}": weight(rng, WIDTH, WIDTH)
    }  # fmt: skip


def _transformer_params(layers: int) -> Callable[[np.random.Generator], Params]:
    def params(rng: np.random.Generator) -> Params:
        found = _embedding(rng)
        for k in range(layers):
            found |= _attention_params(rng, k)
            found |= {f"up{k}": weight(rng, WIDTH, 4 * WIDTH), f"down{k}": weight(rng, 4 * WIDTH, WIDTH)}
        return found

    return params


def _sentences(rng: np.random.Generator, size: int) -> Sequence[Any]:
    return (rng.integers(0, WORDS, (size, LENGTH + 1)).astype(np.int32),)


def _attention(jax: Any, jnp: Any, p: Params, k: int, x: Any) -> Any:
    def heads(a: Any) -> Any:
        return a.reshape(x.shape[0], LENGTH, HEADS, -1).transpose(0, 2, 1, 3)

    q, key, v = (heads(a) for a in jnp.split(_norm(jax, x, p[f"scale{k}"]) @ p[f"qkv{k}"], 3, axis=-1))
    scores = q @ key.swapaxes(2, 3) / np.sqrt(WIDTH / HEADS).astype(f4)
    earlier = jnp.arange(LENGTH)[:, None] >= jnp.arange(LENGTH)[None, :]
    mixed = jax.nn.softmax(jnp.where(earlier, scores, -1e9), axis=-1) @ v
    return x + mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ p[f"out{k}"]


def _norm(jax: Any, x: Any, scale: Any) -> Any:
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale


def _word_loss(jax: Any, jnp: Any, p: Params, x: Any, words: Any) -> Any:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(x @ p["table"].T), words[:, 1:, None], axis=-1)
    return -chosen.mean()


def _transformer_loss(layers: int) -> Callable[..., Any]:
    def loss(jax: Any, jnp: Any, p: Params, words: Any) -> Any:
        x = p["table"][words[:, :-1]] + p["places"]
        for k in range(layers):
            x = _attention(jax, jnp, p, k, x)
            x = x + jax.nn.gelu(x @ p[f"up{k}"]) @ p[f"down{k}"]
        return _word_loss(jax, jnp, p, x, words)

    return loss


def _experts_params(layers: int) -> Callable[[np.random.Generator], Params]:
    def params(rng: np.random.Generator) -> Params:
        found = _embedding(rng)
        for k in range(layers):
            found |= _attention_params(rng, k)
            found |= {
                f"gate{k}": weight(rng, WIDTH, EXPERTS),
                f"up{k}": np.stack([weight(rng, WIDTH, 2 * WIDTH) for _ in range(EXPERTS)]),
                f"down{k}": np.stack([weight(rng, 2 * WIDTH, WIDTH) for _ in range(EXPERTS)]),
            }
        return found

    return params


def _experts_loss(layers: int) -> Callable[..., Any]:
    """A mixture of experts: each word goes to its best two."""

    def loss(jax: Any, jnp: Any, p: Params, words: Any) -> Any:
        x = p["table"][words[:, :-1]] + p["places"]
        for k in range(layers):
            x = _attention(jax, jnp, p, k, x)
            weights, chosen = jax.lax.top_k(jax.nn.softmax(x @ p[f"gate{k}"]), 2)
            shares = (jax.nn.one_hot(chosen, EXPERTS) * weights[..., None]).sum(-2)
            hidden = jax.nn.relu(jnp.einsum("blw,ewh->belh", x, p[f"up{k}"]))
            x = x + jnp.einsum("belh,ehw,ble->blw", hidden, p[f"down{k}"], shares)
        return _word_loss(jax, jnp, p, x, words)

    return loss


# ------------------------------------------------------------------------------------------------ convolution networks


def _convolution(jax: Any, x: Any, w: Any, stride: int = 1) -> Any:
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME")


def _batch_norm(jax: Any, x: Any, scale: Any, shift: Any) -> Any:
    mean = x.mean((0, 2, 3), keepdims=True)
    centred = x - mean
    deviation = jax.lax.rsqrt((centred * centred).mean((0, 2, 3), keepdims=True) + 1e-5)
    return centred * deviation * scale[:, None, None] + shift[:, None, None]


def _images(rng: np.random.Generator, size: int) -> Sequence[Any]:
    return rng.standard_normal((size, 3, 16, 16)).astype(f4), rng.integers(0, 10, size).astype(np.int32)


_CHANNELS = (8, 16, 32)


def _residual_params(blocks: int) -> Callable[[np.random.Generator], Params]:
    def params(rng: np.random.Generator) -> Params:
        found = {"first": weight(rng, _CHANNELS[0], 3, 3, 3), "last": weight(rng, _CHANNELS[-1], 10)}
        before = _CHANNELS[0]
        for stage, channels in enumerate(_CHANNELS):
            for block in range(blocks):
                for k in range(2):
                    name = f"{stage}.{block}.{k}"
                    found[f"w{name}"] = weight(rng, channels, before if k == 0 else channels, 3, 3)
                    found |= {f"g{name}": np.ones(channels, f4), f"b{name}": bias(channels)}
                if before != channels:
                    found[f"p{stage}"] = weight(rng, channels, before, 1, 1)
                before = channels
        return found

    return params


def _residual_loss(blocks: int) -> Callable[..., Any]:
    """A network for small images (He and others, 2015): three stages of `blocks` blocks, two convolutions in each."""

    def loss(jax: Any, jnp: Any, p: Params, images: Any, labels: Any) -> Any:
        x = _convolution(jax, images, p["first"])
        for stage in range(len(_CHANNELS)):
            for block in range(blocks):
                stride = 2 if stage and not block else 1
                name = f"{stage}.{block}."
                y = _convolution(jax, x, p[f"w{name}0"], stride)
                y = jax.nn.relu(_batch_norm(jax, y, p[f"g{name}0"], p[f"b{name}0"]))
                y = _batch_norm(jax, _convolution(jax, y, p[f"w{name}1"]), p[f"g{name}1"], p[f"b{name}1"])
                x = jax.nn.relu(y + (_convolution(jax, x, p[f"p{stage}"], 2) if stride == 2 else x))
        scores = jax.nn.log_softmax(x.mean((2, 3)) @ p["last"])
        return -(scores * jax.nn.one_hot(labels, 10)).sum(1).mean()

    return loss


_LEVELS = 3


def _unet_params(rng: np.random.Generator) -> Params:
    found, before = {}, 3
    for k in range(_LEVELS):
        found |= {f"down{k}a": weight(rng, 8 << k, before, 3, 3), f"down{k}b": weight(rng, 8 << k, 8 << k, 3, 3)}
        before = 8 << k
    for k in reversed(range(_LEVELS - 1)):
        found |= {f"up{k}a": weight(rng, 8 << k, 24 << k, 3, 3), f"up{k}b": weight(rng, 8 << k, 8 << k, 3, 3)}
    return found | {"last": weight(rng, 3, 8, 1, 1)}


def _unet_loss(jax: Any, jnp: Any, p: Params, images: Any, _: Any) -> Any:
    def pair(x: Any, name: str) -> Any:
        for k in "ab":
            x = jax.nn.relu(_convolution(jax, x, p[f"{name}{k}"]))
        return x

    x, kept = images, []
    for k in range(_LEVELS):
        x = pair(x, f"down{k}")
        if k < _LEVELS - 1:
            kept.append(x)
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    for k in reversed(range(_LEVELS - 1)):
        x = jnp.concatenate([jnp.repeat(jnp.repeat(x, 2, 2), 2, 3), kept[k]], 1)
        x = pair(x, f"up{k}")
    return ((_convolution(jax, x, p["last"]) - images) ** 2).mean()


# --------------------------------------------------------------------------------------------------------- integrators


def _lorenz(jnp: Any, state: Any) -> Any:
    """A step of RK4 for Lorenz' equations (1963), for many starts."""

    def slope(s: Any) -> Any:
        x, y, z = s
        return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z

    def moved(k: Any, h: float) -> Any:
        return [a + h * b for a, b in zip(state, k)]

    k1 = slope(state)
    k2 = slope(moved(k1, 0.005))
    k3 = slope(moved(k2, 0.005))
    k4 = slope(moved(k3, 0.01))
    return tuple([a + 0.01 / 6 * (p + 2 * q + 2 * r + s) for a, p, q, r, s in zip(state, k1, k2, k3, k4)])


def _shallow_water(jnp: Any, state: Any) -> Any:
    """A step of the shallow-water equations on a torus: velocities, then the height, by central differences."""
    u, v, h = state

    def along(a: Any, axis: int) -> Any:
        return 0.5 * (jnp.roll(a, -1, axis) - jnp.roll(a, 1, axis))

    u = u - 0.05 * (along(h, 0) + u * along(u, 0) + v * along(u, 1) - 0.1 * v)
    v = v - 0.05 * (along(h, 1) + u * along(v, 0) + v * along(v, 1) + 0.1 * u)
    return u, v, h - 0.05 * (along(u * h, 0) + along(v * h, 1))


def _random(*before: int) -> Callable[[np.random.Generator, int], tuple[Any, ...]]:
    def state(rng: np.random.Generator, size: int) -> tuple[Any, ...]:
        return tuple([(1 + 0.1 * rng.standard_normal((*before, size))).astype(f4) for _ in range(3)])

    return state


def _network(title: str, params: Callable[..., Params], batch: Callable[..., Sequence[Any]], loss: Any) -> Model:
    return Model(title, 8, params, batch, loss, None)


PROGRAMS: Mapping[str, Model | Integrator] = {
    **{
        f"transformer-{n}": _network(
            f"transformer of {n} layers", _transformer_params(n), _sentences, _transformer_loss(n)
        )
        for n in (2, 8, 24, 48)
    },
    **{
        f"resnet-{6 * n + 2}": _network(
            f"residual network of {6 * n + 2} layers", _residual_params(n), _images, _residual_loss(n)
        )
        for n in (3, 9, 18)
    },
    "unet": _network("U-Net of 3 levels", _unet_params, _images, _unet_loss),
    "experts": _network("mixture of experts, 4 layers", _experts_params(4), _sentences, _experts_loss(4)),
    "lorenz-50": Integrator("Lorenz, 50 steps of RK4 unrolled", 50, _lorenz, _random(), 1000),
    "lorenz-400": Integrator("Lorenz, 400 steps of RK4 unrolled", 400, _lorenz, _random(), 1000),
    "water-170": Integrator("shallow water, 10,000 operations", 170, _shallow_water, _random(32), 32),
}
