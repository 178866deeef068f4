"""Cases of programs that are compiled once and run many times. The programs of all peers are next to each other."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from . import layouts, mlp, rows, targets, windows
from .harness import Case, Program

RNG = np.random.default_rng(1)
TRACED = ("hloom", "jax")
"""The peers that run the same text."""

Builder = Callable[[], Program]


def traced(build: Callable[[Any, Any], Callable[[], Any]]) -> dict[str, Builder]:
    """Programs for hloom and JAX from `build(jax, jax.numpy)`, which returns the function to call."""

    def builder(package: str) -> Builder:
        def make() -> Program:
            jax = importlib.import_module(package)
            run = build(jax, importlib.import_module(package + ".numpy"))
            return Program(run, jax.block_until_ready)

        return make

    return {package: builder(package) for package in TRACED}


def numpy_program(build: Callable[[], Callable[[], Any]]) -> dict[str, Builder]:
    return {"numpy": lambda: Program(build())}


def numba_program(build: Callable[[Any], Callable[[], Any]]) -> dict[str, Builder]:
    return {"numba": lambda: Program(build(importlib.import_module("numba")))}


def torch_program(build: Callable[[Any], Callable[[], Any]]) -> dict[str, Builder]:
    def make() -> Program:
        torch = importlib.import_module("torch")
        torch.set_grad_enabled(False)
        return Program(build(torch))

    return {"torch": make}


def mlp_step() -> Case:
    batch = 128

    def of(package: str) -> Builder:
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

    def in_torch() -> Program:
        torch = importlib.import_module("torch")

        def fresh() -> Any:
            params, images, labels = mlp.inputs(batch)
            leaves = [torch.from_numpy(layer[n].copy()).requires_grad_() for layer in params for n in ("w", "b")]
            return (
                leaves,
                [torch.zeros_like(p) for p in leaves],
                torch.from_numpy(images),
                torch.from_numpy(labels).long(),
            )

        def step(leaves: Any, velocity: Any, images: Any, labels: Any) -> Any:
            w1, b1, w2, b2, w3, b3 = leaves
            with torch.enable_grad():
                x = torch.relu(torch.addmm(b1, images, w1))
                x = torch.relu(torch.addmm(b2, x, w2))
                value = torch.nn.functional.cross_entropy(torch.addmm(b3, x, w3), labels)
                gradients = torch.autograd.grad(value, leaves)
            with torch.no_grad():
                torch._foreach_mul_(velocity, mlp.MOMENTUM)
                torch._foreach_add_(velocity, list(gradients), alpha=-mlp.RATE)
                torch._foreach_add_(leaves, velocity)
            return value

        def check() -> Any:
            arguments = fresh()
            for _ in range(2):
                step(*arguments)
            return [p.detach() for p in arguments[0] + arguments[1]]

        arguments = fresh()
        return Program(lambda: step(*arguments), check=check)

    programs = {**{p: of(p) for p in TRACED}, "numpy": in_numpy, "numba": in_numba, "torch": in_torch}
    return Case("mlp", f"MLP training step, {batch}x784-512-512-10, momentum", programs)


def elementwise() -> Case:
    x = RNG.standard_normal(1_000_000).astype(np.float32)

    def chain(jax: Any, jnp: Any) -> Callable[[], Any]:
        def f(x: Any) -> Any:
            y = jnp.tanh(x) * 2 + jnp.exp(-x * x)
            return y / (1 + jnp.abs(y))

        f, own = jax.jit(f), jnp.asarray(x)
        return lambda: f(own)

    def in_numpy() -> Callable[[], Any]:
        def f() -> Any:
            y = np.tanh(x) * 2 + np.exp(-x * x)
            return y / (1 + np.abs(y))

        return f

    def in_numba(numba: Any) -> Callable[[], Any]:
        @numba.njit(parallel=True, fastmath={"contract"}, error_model="numpy")  # type: ignore[untyped-decorator]
        def f(x):  # type: ignore[no-untyped-def]
            out = np.empty_like(x)
            for i in numba.prange(x.size):
                y = np.tanh(x[i]) * np.float32(2) + np.exp(-x[i] * x[i])
                out[i] = y / (np.float32(1) + abs(y))
            return out

        return lambda: f(x)

    def in_torch(torch: Any) -> Callable[[], Any]:
        own = torch.from_numpy(x)

        def f() -> Any:
            y = torch.tanh(own) * 2 + torch.exp(-own * own)
            return y / (1 + torch.abs(y))

        return f

    programs = traced(chain) | numpy_program(in_numpy) | numba_program(in_numba) | torch_program(in_torch)
    return Case("elementwise", "tanh(x)*2 + exp(-x*x), y/(1+abs(y)), 1M f32", programs)


def softmax() -> Case:
    x = RNG.standard_normal((1024, 1024)).astype(np.float32)

    def of(jax: Any, jnp: Any) -> Callable[[], Any]:
        f, own = jax.jit(lambda x: jax.nn.softmax(x, axis=1)), jnp.asarray(x)
        return lambda: f(own)

    def in_numpy() -> Callable[[], Any]:
        def f() -> Any:
            e = np.exp(x - x.max(axis=1, keepdims=True))
            return e / e.sum(axis=1, keepdims=True)

        return f

    def in_numba(numba: Any) -> Callable[[], Any]:
        @numba.njit(parallel=True, fastmath={"contract", "reassoc", "nsz"}, error_model="numpy")  # type: ignore[untyped-decorator]
        def f(x):  # type: ignore[no-untyped-def]
            out = np.empty_like(x)
            for i in numba.prange(x.shape[0]):
                highest = x[i, 0]
                for j in range(x.shape[1]):
                    highest = max(highest, x[i, j])
                total = np.float32(0)
                for j in range(x.shape[1]):
                    out[i, j] = np.exp(x[i, j] - highest)
                    total += out[i, j]
                for j in range(x.shape[1]):
                    out[i, j] /= total
            return out

        return lambda: f(x)

    def in_torch(torch: Any) -> Callable[[], Any]:
        own = torch.from_numpy(x)
        return lambda: torch.softmax(own, dim=1)

    programs = traced(of) | numpy_program(in_numpy) | numba_program(in_numba) | torch_program(in_torch)
    return Case("softmax", "softmax of 1024x1024 f32 rows", programs)


def sums(axis: int | None) -> Callable[[], Case]:
    def case() -> Case:
        x = RNG.standard_normal((2048, 2048)).astype(np.float32) + np.float32(0.5)

        def of(jax: Any, jnp: Any) -> Callable[[], Any]:
            f, own = jax.jit(lambda x: jnp.sum(x, axis=axis)), jnp.asarray(x)
            return lambda: f(own)

        def in_numba(numba: Any) -> Callable[[], Any]:
            options = {"parallel": True, "fastmath": {"contract", "reassoc", "nsz"}, "error_model": "numpy"}

            @numba.njit(**options)  # type: ignore[untyped-decorator]
            def rows(x):  # type: ignore[no-untyped-def]
                out = np.empty(x.shape[0], np.float32)
                for i in numba.prange(x.shape[0]):
                    total = np.float32(0)
                    for j in range(x.shape[1]):
                        total += x[i, j]
                    out[i] = total
                return out

            @numba.njit(**options)  # type: ignore[untyped-decorator]
            def columns(x):  # type: ignore[no-untyped-def]
                strips = numba.get_num_threads()
                width = (x.shape[1] + strips - 1) // strips
                out = np.zeros(x.shape[1], np.float32)
                for s in numba.prange(strips):
                    for i in range(x.shape[0]):
                        for j in range(s * width, min(x.shape[1], (s + 1) * width)):
                            out[j] += x[i, j]
                return out

            @numba.njit(**options)  # type: ignore[untyped-decorator]
            def everything(x):  # type: ignore[no-untyped-def]
                total = np.float32(0)
                for i in numba.prange(x.shape[0]):
                    row = np.float32(0)  # a separate variable, so that the inner loop is vectorised
                    for j in range(x.shape[1]):
                        row += x[i, j]
                    total += row
                return total

            f = {None: everything, 0: columns, 1: rows}[axis]
            return lambda: f(x)

        def in_torch(torch: Any) -> Callable[[], Any]:
            own = torch.from_numpy(x)
            return lambda: torch.sum(own) if axis is None else torch.sum(own, dim=axis)

        programs = (
            traced(of) | numpy_program(lambda: lambda: x.sum(axis)) | numba_program(in_numba) | torch_program(in_torch)
        )
        name = "all" if axis is None else f"axis {axis}"
        return Case(f"sum-{name.replace('axis ', '')}", f"sum of 2048x2048 f32, {name}", programs)

    return case


def dispatch(native: bool) -> Callable[[], Case]:
    def case() -> Case:
        a, b = np.arange(8, dtype=np.float32), np.ones(8, np.float32)

        def of(jax: Any, jnp: Any) -> Callable[[], Any]:
            f = jax.jit(lambda a, b: a + b)
            own_a, own_b = (jnp.asarray(a), jnp.asarray(b)) if native else (a, b)
            return lambda: f(own_a, own_b)

        def in_numba(numba: Any) -> Callable[[], Any]:
            @numba.njit  # type: ignore[untyped-decorator]
            def f(a, b):  # type: ignore[no-untyped-def]
                return a + b

            return lambda: f(a, b)

        def in_torch(torch: Any) -> Callable[[], Any]:
            own_a, own_b = torch.from_numpy(a), torch.from_numpy(b)
            return lambda: own_a + own_b

        programs = traced(of) | numpy_program(lambda: lambda: a + b) | numba_program(in_numba)
        if native:
            programs |= torch_program(in_torch)
        name = "dispatch" if native else "dispatch-numpy"
        what = "its own arrays" if native else "NumPy arguments"
        return Case(name, f"call of a jitted a + b, f32[8], {what}", programs, wait_each=False)

    return case


def loop() -> Case:
    h = RNG.standard_normal((64, 64)).astype(np.float32)
    w = (RNG.standard_normal((64, 64)) / 8).astype(np.float32)
    steps = 100

    def of(jax: Any, jnp: Any) -> Callable[[], Any]:
        f = jax.jit(lambda h, w: jax.lax.fori_loop(0, steps, lambda _, h: jnp.tanh(h @ w), h))
        own_h, own_w = jnp.asarray(h), jnp.asarray(w)
        return lambda: f(own_h, own_w)

    def in_numpy() -> Callable[[], Any]:
        def f() -> Any:
            x = h
            for _ in range(steps):
                x = np.tanh(x @ w)
            return x

        return f

    def in_numba(numba: Any) -> Callable[[], Any]:
        @numba.njit(error_model="numpy")  # type: ignore[untyped-decorator]
        def f(h, w):  # type: ignore[no-untyped-def]
            x, y = h.copy(), np.empty_like(h)
            for _ in range(steps):
                np.dot(x, w, y)
                for i in range(x.shape[0]):
                    for j in range(x.shape[1]):
                        x[i, j] = np.tanh(y[i, j])
            return x

        return lambda: f(h, w)

    def in_torch(torch: Any) -> Callable[[], Any]:
        own_h, own_w = torch.from_numpy(h), torch.from_numpy(w)

        def f() -> Any:
            x = own_h
            for _ in range(steps):
                x = torch.tanh(x @ own_w)
            return x

        return f

    programs = traced(of) | numpy_program(in_numpy) | numba_program(in_numba) | torch_program(in_torch)
    return Case("loop", f"fori_loop, {steps} steps of tanh(h @ w), 64x64", programs, tolerance=1e-3)


CASES: dict[str, Callable[[], Case]] = {
    "mlp": mlp_step,
    "elementwise": elementwise,
    "softmax": softmax,
    "sum-all": sums(None),
    "sum-0": sums(0),
    "sum-1": sums(1),
    "dispatch": dispatch(native=True),
    "dispatch-numpy": dispatch(native=False),
    "loop": loop,
    **rows.CASES,
    **windows.CASES,
    **layouts.CASES,
    **targets.CASES,
}
