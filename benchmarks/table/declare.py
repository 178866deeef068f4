"""How a row of the table is declared: the work once, for all peers.

A row is a function of sizes that returns a `Row`: arguments in NumPy, one text for hloom and JAX, and the same work for
the others, as their users write it. The text is often a function of a namespace, so that NumPy and PyTorch run it too
(`over`). A Numba version is loops by hand in plain Python: it is compiled with threads where it says `prange`, and runs
without Numba at the small sizes that the row gives for tests.
"""

from __future__ import annotations

import dis
import importlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from .. import limits, translated
from ..harness import Case, Program

NDArray = np.ndarray[Any, Any]
Function = Callable[..., Any]
Builder = Callable[[], Program]
Text = Callable[[Any, Any], Function]
"""`text(jax, jax.numpy)`, or with hloom and hloom.numpy in their place, returns the function to jit."""

TRACED = ("hloom", "jax")
"""The peers that run the same text."""
COMPILED = "torch.compile"

NUMBA_OPTIONS: dict[str, Any] = {"fastmath": {"contract", "reassoc", "nsz"}, "error_model": "numpy"}
"""Sums in any order, as the other peers have them; NaN and infinity are kept."""
prange = range
"""In a Numba version: a loop with iterations that threads share."""


def over(function: Function) -> Text:
    """The text of `function(numpy-like namespace, *arguments)`."""
    return lambda jax, jnp: lambda *arguments: function(jnp, *arguments)


def traced(build: Callable[[Any, Any], Callable[[], Any]]) -> dict[str, Builder]:
    """Programs for hloom and JAX from `build(jax, jax.numpy)`, which returns the function to call."""

    def builder(package: str) -> Builder:
        def make() -> Program:
            jax = importlib.import_module(package)
            run = build(jax, importlib.import_module(package + ".numpy"))
            return Program(run, jax.block_until_ready)

        return make

    return {package: builder(package) for package in TRACED}


@dataclass(frozen=True)
class Gradient:
    """In PyTorch: the gradient of `loss(*arguments)` by the arguments `by`; `value`: with the loss before it."""

    loss: Function
    by: tuple[int, ...] = (0,)
    value: bool = False


@dataclass(frozen=True)
class Row:
    """The work of a case, as each peer computes it; a peer that is None has no natural version of the work."""

    title: str
    arguments: Sequence[Any]
    """NumPy arrays, Python scalars, and lists, tuples and dictionaries of them."""
    text: Text
    numpy: Function | None = None
    numba: Function | None = None
    torch: Callable[[Any], Function | Gradient] | None = None
    """`torch(torch module)` returns the function."""
    compiled: bool = True
    """Whether torch.compile is measured as well: not where it would call the same library function."""
    element: str | None = None
    """The arguments' floats become these, such as "bfloat16", which NumPy has not."""
    moments: bool = False
    """The results are random: hloom's and JAX's are equal, the others' have the same mean and deviation."""
    tolerance: float = 1e-4
    equal: float = 0.0
    wide: bool = False
    """With 64 bits: `jax_enable_x64`."""
    wait_each: bool = True
    by_name: bool = False
    """`arguments` is one dictionary of keyword arguments."""

    def case(self, name: str) -> Case:
        programs: dict[str, Builder] = {peer: self._traced(peer) for peer in TRACED}
        if (own := self.numpy) is not None:
            programs["numpy"] = lambda: self._direct(own)
        if self.numba is not None:
            programs["numba"] = lambda: self._direct(compiled(self.numba))
        if self.torch is not None:
            programs["torch"] = lambda: self._in_torch(False)
            if self.compiled:
                programs[COMPILED] = lambda: self._in_torch(True)
        for peer in ("iree", "mlx", "pytensor"):
            programs[peer] = self._translated(getattr(translated, peer))
        if self.numba is not None and not self.element and not self.by_name:
            programs["pythran"] = lambda: translated.pythran(self.numba, self.arguments)
        others = frozenset(translated.PEERS)
        checks = self.tolerance, self.equal
        return Case(name, self.title, programs, *checks, self.wait_each, self.moments, others)

    def _call(self, function: Function, own: Sequence[Any]) -> Callable[[], Any]:
        if self.by_name:
            return lambda: function(**own[0])
        if len(own) == 1:  # no list to unpack: a few rows measure the call itself
            (one,) = own
            return lambda: function(one)
        if len(own) == 2:
            one, two = own
            return lambda: function(one, two)
        return lambda: function(*own)

    def _traced(self, package: str) -> Builder:
        def build() -> Program:
            jax, jnp = importlib.import_module(package), importlib.import_module(package + ".numpy")
            jax.config.update("jax_enable_x64", self.wide)  # for the process, which has one case at a time
            wanted = jnp.dtype(self.element) if self.element else None
            own = [
                _leaves(a, lambda x: jnp.asarray(x, wanted if x.dtype == np.float32 else None)) for a in self.arguments
            ]
            jitted = jax.jit(self.text(jax, jnp))
            work = None if package != "hloom" or self.by_name else lambda: limits.work(jitted, own)
            return Program(self._call(jitted, own), jax.block_until_ready, work=work)

        return build

    def _translated(self, peer: Callable[..., Program]) -> Builder:
        """The row's JAX text, by a peer that runs it in its own way."""

        def text(jax: Any, jnp: Any) -> Function:
            function = self.text(jax, jnp)
            return (lambda given: function(**given)) if self.by_name else function

        return lambda: peer(text, self.arguments, self.wide, self.element)

    def _direct(self, function: Function) -> Program:
        own = list(self.arguments)
        if self.element:
            wanted = np.dtype(getattr(importlib.import_module("ml_dtypes"), self.element))
            own = [_leaves(a, lambda x: x.astype(wanted) if x.dtype == np.float32 else x) for a in own]
        return Program(self._call(function, own))

    def _in_torch(self, compiled: bool) -> Program:
        torch = importlib.import_module("torch")
        torch.set_grad_enabled(False)
        wanted = getattr(torch, self.element) if self.element else None

        def own(array: NDArray) -> Any:
            tensor = torch.from_numpy(np.array(array))
            return tensor.to(wanted) if wanted and tensor.is_floating_point() else tensor

        assert self.torch is not None
        function = self.torch(torch)
        return Program(self._call(torch_function(torch, function, compiled), [_leaves(a, own) for a in self.arguments]))


def torch_function(torch: Any, function: Function | Gradient, compiled: bool) -> Function:
    """The function to call, compiled if asked; for a gradient, the loss is compiled, forwards and backwards."""
    whole = function.loss if isinstance(function, Gradient) else function
    if compiled:
        importlib.import_module("torch._dynamo").reset()
        whole = torch.compile(whole, dynamic=False)
    if not isinstance(function, Gradient):
        return whole
    by, with_value = function.by, function.value

    def run(*arguments: Any) -> Any:
        given = list(arguments)
        for k in by:
            given[k] = given[k].detach().requires_grad_()
        with torch.enable_grad():
            value = whole(*given)
            gradients = torch.autograd.grad(value, [given[k] for k in by])
        found = gradients[0] if len(by) == 1 else gradients
        return (value.detach(), found) if with_value else found

    return run


def compiled(function: Any) -> Any:
    """A Numba version, compiled; the functions of its module that it calls are compiled first."""
    numba = importlib.import_module("numba")
    names = {step.argval for step in dis.get_instructions(function) if step.opname == "LOAD_GLOBAL"}
    scope = dict(function.__globals__)
    for name in names:
        other = scope.get(name)
        if isinstance(other, FunctionType) and other.__module__ == function.__module__:
            scope[name] = compiled(other)
    scope["prange"] = numba.prange
    plain = FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    return numba.njit(parallel="prange" in names, **NUMBA_OPTIONS)(plain)


def _leaves(tree: Any, of: Callable[[NDArray], Any]) -> Any:
    """The tree with `of` applied to its arrays."""
    if isinstance(tree, dict):
        return {name: _leaves(value, of) for name, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_leaves(value, of) for value in tree)
    return of(tree) if isinstance(tree, np.ndarray) else tree


Factory = Callable[..., "Row | Case"]


@dataclass
class Group:
    """Rows of one kind. `tiny` are sizes at which a row's Numba version runs in plain Python in a moment."""

    name: str
    rows: dict[str, Factory] = field(default_factory=dict)
    tiny: dict[str, Mapping[str, int]] = field(default_factory=dict)

    def row(self, name: str, **tiny: int) -> Callable[[Factory], Factory]:
        """Enter a function that draws numbers with its first argument; the others are sizes (defaults: measured)."""

        def enter(factory: Factory) -> Factory:
            assert name not in self.rows, name
            self.rows[name] = factory
            self.tiny[name] = tiny
            return factory

        return enter

    def make(self, name: str, **sizes: int) -> Row | Case:
        """A row; the same arguments each time, in every process."""
        return self.rows[name](np.random.default_rng(zlib.crc32(name.encode())), **sizes)

    def case(self, name: str) -> Case:
        made = self.make(name)
        return made if isinstance(made, Case) else made.case(name)

    def cases(self) -> dict[str, Callable[[], Case]]:
        return {name: (lambda name=name: self.case(name)) for name in self.rows}


def floats(rng: np.random.Generator, *dimensions: int) -> NDArray:
    """Normally distributed."""
    return rng.standard_normal(dimensions, np.float32)
