"""`hloom.experimental.random`: a generator of random numbers that changes as it draws, as NumPy's do. JAX's names.

It is a key and a counter in a reference to a mutable array (`hloom.new_ref`), so it works within jit and loops as
references do.
"""

import operator as _operator
from collections.abc import Sequence as _Sequence
from dataclasses import dataclass as _dataclass
from typing import Any as _Any

import numpy as _np

from .. import numpy as _jnp
from .. import random as _random
from ..hlo.support.tracebacks import boundaries as _boundaries
from ..namespaces import publish as _publish
from ..tracer.core import EVAL as _EVAL
from ..tracer.core import current_trace as _current_trace
from ..tracer.references.refs import new_ref as _new_ref
from ..tracer.trees.nodes import register_dataclass as _register_dataclass

__all__ = ["StatefulPRNG", "stateful_rng"]

_Size = int | _Sequence[int] | None


def _shape(size: _Size, *args: _Any) -> tuple[int, ...]:
    if size is None:
        return _np.broadcast_shapes(*[_np.shape(a) for a in args])
    return tuple(map(_operator.index, size)) if isinstance(size, _Sequence) else (_operator.index(size),)


@_boundaries
@_register_dataclass
@_dataclass(frozen=True)
class StatefulPRNG:
    """A generator with a key and the number of keys that it has derived from it as its state. `stateful_rng` makes
    one."""

    _base_key: _Any
    _counter: _Any

    def key(self, shape: int | _Sequence[int] = ()) -> _Any:
        """A new key, or an array of keys of this shape. ValueError for a generator that `split` has made, outside of
        `vmap`."""
        if self._base_key.shape:
            raise ValueError("cannot operate on split stateful generator: map over it with hloom.vmap")
        key = _random.fold_in(self._base_key, self._counter[...])
        self._counter.addupdate(1)
        sizes = _shape(shape)
        return _random.split(key, sizes) if sizes else key

    def random(self, size: _Size = None, dtype: _Any = float) -> _Any:
        """Uniform numbers in [0, 1), of the shape `size`."""
        return _random.uniform(self.key(), _shape(size), dtype)

    def uniform(self, low: _Any = 0, high: _Any = 1, size: _Size = None, *, dtype: _Any = float) -> _Any:
        """Uniform numbers in [low, high)."""
        return _random.uniform(self.key(), _shape(size, low, high), dtype, low, high)

    def normal(self, loc: _Any = 0, scale: _Any = 1, size: _Size = None, *, dtype: _Any = float) -> _Any:
        """Normally distributed numbers of mean `loc` and standard deviation `scale`."""
        drawn = _random.normal(self.key(), _shape(size, loc, scale), dtype)
        return (_jnp.asarray(loc) + _jnp.asarray(scale) * drawn).astype(dtype)

    def integers(self, low: _Any, high: _Any = None, size: _Size = None, *, dtype: _Any = int) -> _Any:
        """Integers in [low, high); in [0, low) without `high`."""
        if high is None:
            low, high = 0, low
        return _random.randint(self.key(), _shape(size, low, high), low, high, dtype)

    def split(self, num: int | _Sequence[int]) -> "StatefulPRNG":
        """Generators, one for each element under `vmap`: a single object for this shape."""
        return StatefulPRNG(self.key(num), _new_ref(_jnp.zeros(num, int)))

    def spawn(self, n_children: int) -> list["StatefulPRNG"]:
        """A list of independent generators."""
        return [StatefulPRNG(key, _new_ref(0)) for key in self.key(n_children)]


def stateful_rng(seed: _Any = None, *, impl: _Any = None) -> StatefulPRNG:
    """A generator with this seed, an integer; by default one that NumPy draws from the system. `impl` names the kind of
    its keys, as for `hloom.random.key`.

    TypeError if there is no seed within a transformation.

    >>> from hloom.experimental import random
    >>> rng = random.stateful_rng(42)
    >>> rng.uniform(), rng.integers(10, size=3)
    (Array(0.5302608, dtype=float32), Array([0, 0, 6], dtype=int32))
    """
    if seed is None:
        if _current_trace() is not _EVAL:
            raise TypeError(
                "When used within transformed code, hloom.experimental.random.stateful_rng() requires a seed to be "
                "provided"
            )
        seed = _np.random.default_rng().integers(0, 1 << 31)
    return StatefulPRNG(_random.key(seed, impl=impl), _new_ref(0))


_publish(__name__)
