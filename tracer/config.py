"""Settings: `hloom.config`. Names are JAX's where it has them; environment variables of the same names set them.

hloom.config.update("jax_enable_x64", True)
hloom.config.jax_enable_x64
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from ..hlo.backend import default_backend, default_target, set_default_backend, set_default_target
from ..hlo.errors import UnsupportedError
from ..hlo.target import Target
from ..hlo.targets import target_named

_SETTINGS = ("hloom_backend", "hloom_target", "jax_default_prng_impl", "jax_disable_jit", "jax_enable_x64")

Context: TypeAlias = tuple[bool, str, str | Target]


class Config:
    """All settings. Compiled functions depend on some of them, so a change empties their dispatch caches."""

    __slots__ = ("_listeners", "context", *_SETTINGS)

    jax_enable_x64: bool
    """Keep 64-bit dtypes; off: they become their 32-bit counterparts, as in JAX."""
    jax_disable_jit: bool
    """jit runs functions op by op, for debugging."""
    hloom_backend: str
    """The backend that compiles: "numba", or "evaluator" (NumPy, op by op; the reference)."""
    hloom_target: str | Target
    """Whose layouts and memories compiled programs use inside: "cpu" (dense, row-major), another name, or a
    `hloom.hlo.Target` of one's own."""
    jax_default_prng_impl: str
    """Only "threefry2x32"."""
    context: Context
    """What traced and compiled programs depend on: a part of their caches' keys. Not a setting."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []
        self.jax_enable_x64 = _flag("JAX_ENABLE_X64")
        self.jax_disable_jit = _flag("JAX_DISABLE_JIT")
        self.hloom_backend = default_backend()
        self.hloom_target = default_target()
        self.jax_default_prng_impl = "threefry2x32"
        self.context = (self.jax_enable_x64, self.hloom_backend, self.hloom_target)

    def update(self, name: str, value: object) -> None:
        """Change a setting. AttributeError for an unknown name, TypeError or ValueError for a value it cannot have."""
        if name not in _SETTINGS:
            raise AttributeError(f"unknown setting {name!r}; known: {', '.join(_SETTINGS)}")
        wanted = (str, Target) if name == "hloom_target" else (type(getattr(self, name)),)
        if not isinstance(value, wanted):
            raise TypeError(f"{name} must be a {' or a '.join(t.__name__ for t in wanted)}, not {value!r}")
        if isinstance(value, str) and name == "hloom_target":
            _check_target(value)
        if name == "jax_default_prng_impl" and value != "threefry2x32":
            raise ValueError(f"the only random number generator is threefry2x32, not {value!r}")
        setattr(self, name, value)
        set_default_backend(self.hloom_backend)
        set_default_target(self.hloom_target)
        self.context = (self.jax_enable_x64, self.hloom_backend, self.hloom_target)
        for listener in self._listeners:
            listener()

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each update."""
        self._listeners.append(listener)

    def __repr__(self) -> str:
        settings = (f"{s}={getattr(self, s)!r}" for s in _SETTINGS)
        return f"Config({', '.join(settings)})"


@contextmanager
def enable_x64(new_val: bool = True) -> Iterator[None]:
    """Within the block 64-bit types are kept (or not). For the whole process, not for one thread."""
    before = config.jax_enable_x64
    config.update("jax_enable_x64", new_val)
    try:
        yield
    finally:
        config.update("jax_enable_x64", before)


def _check_target(name: str) -> None:
    try:
        target_named(name)
    except UnsupportedError as error:
        raise ValueError(str(error)) from None


def _flag(variable: str) -> bool:
    """A boolean environment variable; ValueError if it is neither."""
    text = os.environ.get(variable, "").strip().lower()
    if text in ("", "0", "false", "f", "no", "n", "off"):
        return False
    if text in ("1", "true", "t", "yes", "y", "on"):
        return True
    raise ValueError(f"environment variable {variable} must be true or false, not {text!r}")


config = Config()
