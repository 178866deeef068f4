"""`jax._src.config` for tests: each setting is an object with a value and a context manager, as JAX declares them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import ModuleType
from typing import Any

from hloom.hlo.errors import UnsupportedError

import hloom

_DECLARED: dict[str, Setting] = {}


class Setting:
    """A setting of hloom by JAX's name, or a flag that tests declare for themselves."""

    def __init__(self, name: str, value: Any = None) -> None:
        self.name = name
        self._value = value

    @property
    def _known(self) -> bool:
        return self.name in hloom.config.values

    @property
    def value(self) -> Any:
        return getattr(hloom.config, self.name) if self._known else self._value

    @contextmanager
    def __call__(self, value: Any = True) -> Iterator[None]:
        own = getattr(hloom, self.name.removeprefix("jax_"), None)
        with ExitStack() as stack:
            with suppress(UnsupportedError):  # every test makes some of these; the test itself says what it needs
                stack.enter_context(own(value) if self._known and own is not None else self._for_all_threads(value))
            yield

    @contextmanager
    def _for_all_threads(self, value: Any) -> Iterator[None]:
        before = self.value
        self._set(value)
        try:
            yield
        finally:
            self._set(before)

    def _set(self, value: Any) -> None:
        if self._known:
            hloom.config.update(self.name, value)
        else:
            self._value = value

    def get_local(self) -> Any:
        return self.value

    def get_global(self) -> Any:
        return self.value


class _States(dict[str, Setting]):
    def __missing__(self, name: str) -> Setting:
        return self.setdefault(name, Setting(name))


def _declare(name: str, default: Any = None, *args: Any, **keywords: Any) -> Setting:
    return _DECLARED.setdefault(name, Setting(name, default))


def _read(name: str) -> Any:
    return _DECLARED[name].value if name in _DECLARED else hloom.config.read(name)


def module(other: Callable[[str, str], Any]) -> ModuleType:
    """The module in place of `jax._src.config`. other: finds names that are no settings, by module and name."""
    made = ModuleType("jax._src.config")
    states = _States()

    def find(name: str) -> Any:
        for known in (name, f"jax_{name}"):
            if known in hloom.config.values:
                return states[known]
        return other("config", name)

    made.__file__ = __file__
    made.__dict__.update(
        config=hloom.config,
        config_states=states,
        update=hloom.config.update,
        _read=_read,
        bool_flag=_declare,
        int_flag=_declare,
        string_flag=_declare,
        bool_env=lambda name, default: os.environ.get(name, str(default)).lower() in ("1", "true", "yes"),
        int_env=lambda name, default: int(os.environ.get(name, default)),
        enum_flag=_declare,
        parse_flags_with_absl=hloom.config.parse_flags_with_absl,
        __getattr__=find,
    )
    return made
