"""The case of a loop: one JAX-style program, its arguments, and the same algorithm by hand.

A program is written once and runs under hloom and under JAX; its Numba version is the algorithm as a person writes it
in loops, and runs without Numba too (`plain`), as a reference for small sizes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

import numba
import numpy as np

from .. import limits, translated
from ..harness import Case, Program

NDArray = np.ndarray[Any, Any]
Function = Callable[..., Any]

TRACED = ("hloom", "jax")
"""The peers that run the same text."""
SEED = 11

OPTIONS: dict[str, Any] = {"fastmath": {"contract", "reassoc", "nsz"}, "error_model": "numpy"}
by_hand = numba.njit(**OPTIONS)
"""Makes a Numba version: sums in any order, as the other peers have them; NaN and infinity are kept."""
by_hand_threads = numba.njit(parallel=True, **OPTIONS)
"""The same where `prange` pays."""


@dataclass(frozen=True)
class Loop:
    """`program(jax, jax.numpy, jax.lax, **sizes)` returns the function to jit; `arguments(rng, **sizes)` its arguments.

    `numba` and `numpy` are called with the arguments and then the sizes by name. Each returns what the function
    returns, and leaves its arguments as they are.
    """

    name: str
    title: str
    tags: frozenset[str]
    program: Callable[..., Function]
    arguments: Callable[..., Sequence[Any]]
    sizes: Mapping[str, int]
    tiny: Mapping[str, int]
    """Sizes at which the Numba version runs without Numba in a moment."""
    numba: Any = None
    numpy: Function | None = None
    tolerance: float = 1e-4
    compared: Callable[[Any], Any] = lambda result: result
    """Selects the compared part of a result: for results in which rounding decides about single elements."""
    gradient_of: Gradient | None = field(default=None, repr=False)

    def inputs(self, sizes: Mapping[str, int]) -> list[Any]:
        """The arguments, as NumPy arrays; the same ones each time."""
        return [np.asarray(a) for a in self.arguments(np.random.default_rng(SEED), **sizes)]

    def function(self, jax: ModuleType, sizes: Mapping[str, int]) -> Function:
        """A new function to jit, for hloom or for JAX."""
        return self.program(jax, jax.numpy, jax.lax, **sizes)

    def plain(self, sizes: Mapping[str, int], arguments: Sequence[NDArray] | None = None) -> Any:
        """The result by the Numba version, run by Python itself; of `arguments`, if these are other ones."""
        assert self.numba is not None
        given = self.inputs(sizes) if arguments is None else arguments
        with np.errstate(over="ignore"):  # the words of a key wrap
            return _plain(self.numba)(*map(_scalar, given), **sizes)

    def case(self, sizes: Mapping[str, int] | None = None) -> Case:
        """The programs of all peers, for the harness."""
        chosen = self.sizes if sizes is None else sizes
        programs = {peer: self._traced(peer, chosen) for peer in TRACED}
        if (own := self.numba) is not None:
            programs["numba"] = lambda: self._direct(own, chosen)
        if (whole := self.numpy) is not None:
            programs["numpy"] = lambda: self._direct(whole, chosen)
        own_text = lambda jax, jnp: self.function(jax, chosen)  # noqa: E731
        for peer in ("iree", "mlx", "pytensor"):
            programs[peer] = self._translated(getattr(translated, peer), own_text, chosen)
        if (own := self.numba) is not None:
            programs["pythran"] = self._translated(translated.pythran, own, chosen, [*chosen.values()])
        return Case(self.name, self.title, programs, self.tolerance, translated=frozenset(translated.PEERS))

    def _translated(
        self, peer: Callable[..., Program], text: Any, sizes: Mapping[str, int], *more: Any
    ) -> Callable[[], Program]:
        def build() -> Program:
            made = peer(text, self.inputs(sizes), *more)
            return Program(made.run, made.wait, lambda: self.compared((made.check or made.run)()))

        return build

    def _traced(self, package: str, sizes: Mapping[str, int]) -> Callable[[], Program]:
        def build() -> Program:
            jax, jnp = importlib.import_module(package), importlib.import_module(package + ".numpy")
            run = jax.jit(self.function(jax, sizes))
            own = [jnp.asarray(a) for a in self.inputs(sizes)]
            work = (lambda: limits.work(run, own)) if package == "hloom" else None
            return Program(lambda: run(*own), jax.block_until_ready, lambda: self.compared(run(*own)), work=work)

        return build

    def _direct(self, function: Function, sizes: Mapping[str, int]) -> Program:
        own = [_scalar(a) for a in self.inputs(sizes)]
        return Program(lambda: function(*own, **sizes), check=lambda: self.compared(function(*own, **sizes)))


@dataclass(frozen=True)
class Gradient:
    """A case is the gradient of `loss(jnp, result of of's program)` with respect to the arguments `by`."""

    of: Loop
    by: tuple[int, ...]
    loss: Callable[[Any, Any], Any]


def gradient(of: Loop, by: tuple[int, ...], loss: Callable[[Any, Any], Any], **sizes: int) -> Loop:
    """The gradient of the case `of`, which must be differentiable in reverse. `sizes` replace sizes of `of`."""

    def program(jax: Any, jnp: Any, lax: Any, **sizes: int) -> Function:
        function = of.program(jax, jnp, lax, **sizes)
        return jax.grad(lambda *arguments: loss(jnp, function(*arguments)), by)

    return Loop(
        f"grad-{of.name}", f"gradient: {of.title}", of.tags | {"gradient"}, program, of.arguments,
        {**of.sizes, **sizes}, of.tiny, tolerance=max(of.tolerance, 1e-3), gradient_of=Gradient(of, by, loss),
    )  # fmt: skip


def floats(rng: np.random.Generator, *dimensions: int) -> NDArray:
    """Normally distributed."""
    return rng.standard_normal(dimensions).astype(np.float32)


def uniform(rng: np.random.Generator, low: float, high: float, *dimensions: int) -> NDArray:
    return rng.uniform(low, high, dimensions).astype(np.float32)


def _plain(compiled: Any) -> Function:
    """The Python function of a Numba function, which calls Python functions."""
    function = compiled.py_func
    called = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    scope = {name: _plain(other) for name, other in called.items() if hasattr(other, "py_func")}
    return FunctionType(function.__code__, {**function.__globals__, **scope}, function.__name__)


def _scalar(array: NDArray) -> Any:
    """A scalar for Numba, which has no arithmetic for arrays without dimensions."""
    return array[()] if array.ndim == 0 else array
