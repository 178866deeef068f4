"""Steps of training: the loss, its gradient, momentum, with the state donated.

`MODELS` are the networks. Each has one text for hloom and JAX, and the same in PyTorch as people write it there: the
loss is compiled forwards and backwards, the update in a function of its own. `fresh.py` measures
the time to compile these networks, and their memory.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import mlp
from ..harness import Case, Program
from .declare import COMPILED, TRACED, Group, floats

GROUP = Group("training")
f4 = np.float32
RATE, MOMENTUM = 1e-5, 0.9  # so small that a thousand steps do not change the work


@dataclass(frozen=True)
class Model:
    """`params(rng)` is a dictionary of NumPy arrays; `batch(rng, size)` a list of arrays;
    `loss(jax, jnp, params, *batch)`; `torch(torch, params, *batch)` the same in PyTorch."""

    title: str
    size: int
    params: Callable[[np.random.Generator], dict[str, Any]]
    batch: Callable[[np.random.Generator, int], Sequence[Any]]
    loss: Callable[..., Any]
    torch: Callable[..., Any] | None

    def given(self, size: int | None = None) -> tuple[dict[str, Any], Sequence[Any]]:
        rng = np.random.default_rng(17)
        return self.params(rng), self.batch(rng, size or self.size)

    def arguments(self, package: str, size: int | None = None) -> tuple[Any, ...]:
        """Fresh (state, *batch) in the package's own arrays."""
        jnp = importlib.import_module(package + ".numpy")
        params, batch = self.given(size)
        own = {name: jnp.asarray(p) for name, p in params.items()}
        return (own, {name: jnp.zeros(p.shape, p.dtype) for name, p in own.items()}), *map(jnp.asarray, batch)

    def step(self, package: str, rate: float = RATE) -> Any:
        """The jitted (state, *batch) -> (state, loss) of "hloom" or "jax", traced anew."""
        jax, jnp = importlib.import_module(package), importlib.import_module(package + ".numpy")

        def step(state: Any, *batch: Any) -> Any:
            params, velocity = state
            value, gradient = jax.value_and_grad(lambda p: self.loss(jax, jnp, p, *batch))(params)
            velocity = {name: MOMENTUM * velocity[name] - rate * gradient[name] for name in params}
            return ({name: params[name] + velocity[name] for name in params}, velocity), value

        return jax.jit(step, donate_argnums=0)

    def case(self, name: str) -> Case:
        programs: dict[str, Callable[[], Program]] = {package: self._traced(package) for package in TRACED}
        if self.torch is not None:
            programs |= {"torch": lambda: self._in_torch(False), COMPILED: lambda: self._in_torch(True)}
        return Case(name, self.title, programs, 2e-3)

    def _traced(self, package: str) -> Callable[[], Program]:
        def build() -> Program:
            jax = importlib.import_module(package)
            jax.config.update("jax_enable_x64", False)
            step = self.step(package)
            state, *batch = self.arguments(package)
            kept = [state]

            def run() -> Any:
                kept[0], value = step(kept[0], *batch)
                return value

            def check() -> Any:
                state, *batch = self.arguments(package)
                (_, velocity), value = step(state, *batch)
                return [value, velocity]

            return Program(run, jax.block_until_ready, check)

        return build

    def _in_torch(self, compiled: bool) -> Program:
        torch = importlib.import_module("torch")
        params, given = self.given()
        batch = [torch.from_numpy(np.asarray(a)) for a in given]
        names = list(params)

        def fresh() -> tuple[list[Any], list[Any]]:
            leaves = [torch.from_numpy(np.array(params[name])).requires_grad_() for name in names]
            return leaves, [torch.zeros_like(leaf) for leaf in leaves]

        def loss(leaves: Any, *batch: Any) -> Any:
            assert self.torch is not None
            return self.torch(torch, dict(zip(names, leaves)), *batch)

        def update(leaves: Any, velocity: Any, gradients: Any) -> None:
            torch._foreach_mul_(velocity, MOMENTUM)
            torch._foreach_add_(velocity, gradients, alpha=-RATE)
            torch._foreach_add_(leaves, velocity)

        if compiled:
            importlib.import_module("torch._dynamo").reset()
            loss, update = torch.compile(loss, dynamic=False), torch.compile(update, dynamic=False)

        def step(leaves: Any, velocity: Any) -> Any:
            with torch.enable_grad():
                value = loss(leaves, *batch)
                gradients = torch.autograd.grad(value, leaves)
            with torch.no_grad():
                update(leaves, velocity, list(gradients))
            return value

        kept = fresh()

        def check() -> Any:
            leaves, velocity = fresh()
            value = step(leaves, velocity)
            return [value.detach(), {name: v.detach() for name, v in zip(names, velocity)}]

        return Program(lambda: step(*kept), check=check)


def weight(rng: np.random.Generator, *dimensions: int) -> Any:
    inputs = np.prod(dimensions[1:] if len(dimensions) == 4 else dimensions[:1])
    return floats(rng, *dimensions) * f4(np.sqrt(1 / inputs))


def bias(*dimensions: int) -> Any:
    return np.zeros(dimensions, f4)


# ------------------------------------------------------------------------------------------- a convolutional network


def cnn_params(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "c1": weight(rng, 16, 1, 3, 3),
        "b1": bias(16),
        "c2": weight(rng, 32, 16, 3, 3),
        "b2": bias(32),
        "w3": weight(rng, 32 * 7 * 7, 64),
        "b3": bias(64),
        "w4": weight(rng, 64, 10),
        "b4": bias(10),
    }


def images_and_labels(rng: np.random.Generator, size: int) -> Sequence[Any]:
    return floats(rng, size, 1, 28, 28), rng.integers(0, 10, size).astype(np.int32)


def cnn_loss(jax: Any, jnp: Any, p: Any, images: Any, labels: Any) -> Any:
    def layer(x: Any, w: Any, b: Any) -> Any:
        x = jax.nn.relu(jax.lax.conv_general_dilated(x, w, (1, 1), "SAME") + b[:, None, None])
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    x = layer(layer(images, p["c1"], p["b1"]), p["c2"], p["b2"]).reshape(images.shape[0], -1)
    scores = jax.nn.relu(x @ p["w3"] + p["b3"]) @ p["w4"] + p["b4"]
    return -(jax.nn.log_softmax(scores) * jax.nn.one_hot(labels, 10)).sum(axis=1).mean()


def cnn_torch(torch: Any, p: Any, images: Any, labels: Any) -> Any:
    nn = torch.nn.functional
    x = nn.max_pool2d(torch.relu(nn.conv2d(images, p["c1"], p["b1"], padding=1)), 2)
    x = nn.max_pool2d(torch.relu(nn.conv2d(x, p["c2"], p["b2"], padding=1)), 2).flatten(1)
    scores = torch.relu(x @ p["w3"] + p["b3"]) @ p["w4"] + p["b4"]
    return nn.cross_entropy(scores, labels.long())


# ---------------------------------------------------------------------------------------------- a transformer block

WIDTH, HEADS, LENGTH, WORDS = 128, 4, 64, 256


def transformer_params(rng: np.random.Generator) -> dict[str, Any]:
    one = np.ones(WIDTH, f4)
    return {
        "table": weight(rng, WORDS, WIDTH) * f4(4),
        "places": weight(rng, LENGTH, WIDTH),
        "g1": one,
        "h1": bias(WIDTH),
        "qkv": weight(rng, WIDTH, 3 * WIDTH),
        "out": weight(rng, WIDTH, WIDTH),
        "g2": one.copy(),
        "h2": bias(WIDTH),
        "up": weight(rng, WIDTH, 4 * WIDTH),
        "u": bias(4 * WIDTH),
        "down": weight(rng, 4 * WIDTH, WIDTH),
        "d": bias(WIDTH),
        "scores": weight(rng, WIDTH, WORDS),
    }


def sentences(rng: np.random.Generator, size: int) -> Sequence[Any]:
    return (rng.integers(0, WORDS, (size, LENGTH + 1)).astype(np.int32),)


def transformer_loss(jax: Any, jnp: Any, p: Any, words: Any) -> Any:
    def norm(x: Any, g: Any, h: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * g + h

    count = words.shape[0]
    x = p["table"][words[:, :-1]] + p["places"]
    q, k, v = jnp.split(norm(x, p["g1"], p["h1"]) @ p["qkv"], 3, axis=-1)
    q, k, v = (a.reshape(count, LENGTH, HEADS, -1).transpose(0, 2, 1, 3) for a in (q, k, v))
    scores = q @ k.swapaxes(2, 3) / np.sqrt(WIDTH / HEADS).astype(f4)
    before = jnp.arange(LENGTH)[:, None] >= jnp.arange(LENGTH)[None, :]
    mixed = jax.nn.softmax(jnp.where(before, scores, -1e9), axis=-1) @ v
    x = x + mixed.transpose(0, 2, 1, 3).reshape(count, LENGTH, WIDTH) @ p["out"]
    x = x + jax.nn.gelu(norm(x, p["g2"], p["h2"]) @ p["up"] + p["u"]) @ p["down"] + p["d"]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(x @ p["scores"]), words[:, 1:, None], axis=-1)
    return -chosen.mean()


def transformer_torch(torch: Any, p: Any, words: Any) -> Any:
    nn = torch.nn.functional
    count = words.shape[0]
    x = nn.embedding(words[:, :-1], p["table"]) + p["places"]
    q, k, v = (nn.layer_norm(x, (WIDTH,), p["g1"], p["h1"]) @ p["qkv"]).split(WIDTH, -1)
    q, k, v = (a.reshape(count, LENGTH, HEADS, -1).transpose(1, 2) for a in (q, k, v))
    mixed = nn.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + mixed.transpose(1, 2).reshape(count, LENGTH, WIDTH) @ p["out"]
    hidden = nn.layer_norm(x, (WIDTH,), p["g2"], p["h2"]) @ p["up"] + p["u"]
    x = x + nn.gelu(hidden, approximate="tanh") @ p["down"] + p["d"]
    return nn.cross_entropy((x @ p["scores"]).reshape(-1, WORDS), words[:, 1:].reshape(-1).long())


# -------------------------------------------------------------------------------------------- a variational autoencoder


def vae_params(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "w1": weight(rng, 784, 256),
        "b1": bias(256),
        "mean": weight(rng, 256, 20),
        "bm": bias(20),
        "spread": weight(rng, 256, 20),
        "bs": bias(20),
        "w2": weight(rng, 20, 256),
        "b2": bias(256),
        "w3": weight(rng, 256, 784),
        "b3": bias(784),
    }


def pixels_and_noise(rng: np.random.Generator, size: int) -> Sequence[Any]:
    return rng.random((size, 784)).astype(f4), floats(rng, size, 20)


def vae_loss(jax: Any, jnp: Any, p: Any, x: Any, noise: Any) -> Any:
    hidden = jax.nn.relu(x @ p["w1"] + p["b1"])
    mean, spread = hidden @ p["mean"] + p["bm"], hidden @ p["spread"] + p["bs"]
    z = mean + noise * jnp.exp(0.5 * spread)
    scores = jax.nn.relu(z @ p["w2"] + p["b2"]) @ p["w3"] + p["b3"]
    likelihood = (jnp.maximum(scores, 0) - scores * x + jnp.log1p(jnp.exp(-jnp.abs(scores)))).sum(axis=1)
    divergence = -0.5 * (1 + spread - mean * mean - jnp.exp(spread)).sum(axis=1)
    return (likelihood + divergence).mean()


def vae_torch(torch: Any, p: Any, x: Any, noise: Any) -> Any:
    hidden = torch.relu(x @ p["w1"] + p["b1"])
    mean, spread = hidden @ p["mean"] + p["bm"], hidden @ p["spread"] + p["bs"]
    z = mean + noise * torch.exp(0.5 * spread)
    scores = torch.relu(z @ p["w2"] + p["b2"]) @ p["w3"] + p["b3"]
    likelihood = torch.nn.functional.binary_cross_entropy_with_logits(scores, x, reduction="none").sum(1)
    return (likelihood - 0.5 * (1 + spread - mean * mean - torch.exp(spread)).sum(1)).mean()


MODELS = {
    "cnn": Model(
        "CNN training step, 64 images of 28x28, two convolutions",
        64,
        cnn_params,
        images_and_labels,
        cnn_loss,
        cnn_torch,
    ),
    "transformer": Model(
        "transformer block training step, 16x64 words, width 128",
        16,
        transformer_params,
        sentences,
        transformer_loss,
        transformer_torch,
    ),
    "vae": Model("VAE training step, 128x784-256-20-256-784", 128, vae_params, pixels_and_noise, vae_loss, vae_torch),
}


@GROUP.row("mlp")
def mlp_step(rng: Any) -> Case:
    batch = 128

    def of(package: str) -> Callable[[], Program]:
        def make() -> Program:
            jax = importlib.import_module(package)
            step = mlp.training_step(package)
            state, images, labels = mlp.arguments(package, batch)

            def run() -> Any:
                nonlocal state
                state, value = step(state, images, labels)
                return value

            def check() -> Any:
                fresh, *data = mlp.arguments(package, batch)
                fresh, _ = step(fresh, *data)
                return [layer[name] for part in step(fresh, *data)[0] for layer in part for name in ("w", "b")]

            return Program(run, jax.block_until_ready, check)

        return make

    def in_numpy() -> Program:
        def fresh() -> Any:
            params, images, labels = mlp.inputs(batch)
            return params, [{name: np.zeros_like(p) for name, p in layer.items()} for layer in params], images, labels

        def check() -> Any:
            arguments = fresh()
            for _ in range(2):
                mlp.numpy_step(*arguments)
            return [layer[name] for part in arguments[:2] for layer in part for name in ("w", "b")]

        arguments = fresh()
        return Program(lambda: mlp.numpy_step(*arguments), check=check)

    def in_numba() -> Program:
        step, arguments = importlib.import_module("benchmarks.mlp_numba").step, mlp.numba_arguments(batch)

        def check() -> Any:
            fresh = mlp.numba_arguments(batch)
            for _ in range(2):
                step(*fresh)
            return fresh[:12]

        return Program(lambda: step(*arguments), check=check)

    def in_torch(compiled: bool) -> Callable[[], Program]:
        def make() -> Program:
            return _mlp_in_torch(batch, compiled)

        return make

    programs = {**{p: of(p) for p in TRACED}, "numpy": in_numpy, "numba": in_numba}
    programs |= {"torch": in_torch(False), COMPILED: in_torch(True)}
    return Case("mlp", f"MLP training step, {batch}x784-512-512-10, momentum", programs)


def _mlp_in_torch(batch: int, compiled: bool) -> Program:
    torch = importlib.import_module("torch")

    def fresh() -> Any:
        params, images, labels = mlp.inputs(batch)
        leaves = [torch.from_numpy(layer[n].copy()).requires_grad_() for layer in params for n in ("w", "b")]
        velocity = [torch.zeros_like(p) for p in leaves]
        return leaves, velocity, torch.from_numpy(images), torch.from_numpy(labels).long()

    def loss(leaves: Any, images: Any, labels: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = leaves
        x = torch.relu(torch.addmm(b1, images, w1))
        x = torch.relu(torch.addmm(b2, x, w2))
        return torch.nn.functional.cross_entropy(torch.addmm(b3, x, w3), labels)

    def update(leaves: Any, velocity: Any, gradients: Any) -> None:
        torch._foreach_mul_(velocity, mlp.MOMENTUM)
        torch._foreach_add_(velocity, gradients, alpha=-mlp.RATE)
        torch._foreach_add_(leaves, velocity)

    if compiled:
        importlib.import_module("torch._dynamo").reset()
        loss, update = torch.compile(loss, dynamic=False), torch.compile(update, dynamic=False)

    def step(leaves: Any, velocity: Any, images: Any, labels: Any) -> Any:
        with torch.enable_grad():
            value = loss(leaves, images, labels)
            gradients = torch.autograd.grad(value, leaves)
        with torch.no_grad():
            update(leaves, velocity, list(gradients))
        return value

    def check() -> Any:
        arguments = fresh()
        for _ in range(2):
            step(*arguments)
        return [p.detach() for p in arguments[0] + arguments[1]]

    arguments = fresh()
    return Program(lambda: step(*arguments), check=check)


def enter(name: str) -> None:
    GROUP.row(name)(lambda rng: MODELS[name].case(name))


for model in MODELS:
    enter(model)
