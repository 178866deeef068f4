"""A setting, declared once: attribute of `hloom.config`, context manager, environment variable, flag, documentation.

    class Config:
        jax_no_tracing = Setting(False, "A function that would be traced again for jit is a RuntimeError.")

There are four kinds, by where the value is:

* `Setting`: a value of the process, which a thread overrides within a block. No program depends on it.
* `InContext`: a field of the trace context (`context.py`), so that caches of programs have it in their keys.
* `OfProcess`: a value that another module keeps, and that no thread overrides.
* `OfJax`: a setting of JAX that changes nothing here. Its value is checked, and read as it was set.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import ContextDecorator
from typing import Any, Generic, Self, TypeVar, cast, overload

from ...hlo.errors import UnsupportedError
from ...hlo.support.tracebacks import boundary
from .context import Override, current_context, process_context, update_process

T = TypeVar("T")

_REQUIRED: Any = inspect.Parameter.empty


class _Thread(threading.local):
    overrides: Mapping[Setting[Any], Any] = {}


_thread = _Thread()


class Block(ContextDecorator):
    """Within the block, or the decorated function, settings of this thread differ."""

    def __init__(self, setting: Setting[Any], value: Any) -> None:
        self._own = {setting: value}
        self._before: list[Mapping[Setting[Any], Any]] = []

    def __enter__(self) -> Self:
        self._before.append(_thread.overrides)
        _thread.overrides = {**_thread.overrides, **self._own}
        return self

    def __exit__(self, *_: object) -> None:
        _thread.overrides = self._before.pop()


class Setting(Generic[T]):
    """A setting. Called with a value, it is a context manager, and a decorator, in which this thread has the value.

    `types`: of its values, by default the type of `default`. `values`: all values that it may have. `check` raises an
    error for further values. `hears`: whether the environment variable of its name, in capitals, sets it.
    """

    name = field = ""
    """As `hloom.config` has it, and without the prefix, as the context and the context manager have it."""

    def __init__(
        self, default: T, doc: str, *, types: tuple[type, ...] = (), values: Collection[T] = (),
        check: Callable[[T], None] | None = None, hears: bool = True,
    ) -> None:  # fmt: skip
        self.default = self.of_process = default
        self.types: tuple[type, ...] = types or _types_of(default, values)
        self.values = values
        self.hears = hears
        self._check = check
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.field = self.__name__ = self.__qualname__ = name.removeprefix("jax_").removeprefix("hloom_")
        self.__module__ = owner.__module__

    @overload
    def __get__(self, config: None, owner: type) -> Self: ...
    @overload
    def __get__(self, config: object, owner: type) -> T: ...
    def __get__(self, config: object, owner: type) -> Self | T:
        return self if config is None else self.value

    def __set__(self, config: object, value: T) -> None:
        raise AttributeError(f"settings are changed by config.update({self.name!r}, {value!r})")

    @property
    def value(self) -> T:
        """As this thread sees it."""
        return cast("T", _thread.overrides.get(self, self.of_process))

    def set(self, value: T) -> None:
        """Change the value of the process. TypeError or ValueError for one that the setting cannot have."""
        self.check(value)
        self.of_process = value

    def get_global(self) -> T:
        """The value of the process, whatever this thread has."""
        return self.of_process

    def set_global(self, new_value: T) -> None:
        """Another name of `set`."""
        self.set(new_value)

    @boundary
    def __call__(self, new_val: T = _REQUIRED) -> Block | Override:
        """Within the block, or the decorated function, this thread's value is `new_val`: by default True."""
        if new_val is _REQUIRED:
            if self.types != (bool,):
                raise TypeError(f"{self.__name__} needs a value")
            new_val = cast("T", True)
        self.check(new_val)
        return self.within(new_val)

    def within(self, value: T) -> Block | Override:
        """A block in which this thread has the value."""
        return Block(self, value)

    def check(self, value: Any) -> None:
        """TypeError or ValueError if the setting cannot have the value."""
        if not isinstance(value, self.types) or (isinstance(value, bool) and bool not in self.types):
            kinds = " or ".join(_KINDS.get(t, f"a {t.__name__}") for t in self.types if t is not float)
            raise TypeError(f"{self.name} must be {kinds}, not {value!r}")
        if self.values and value not in self.values:
            raise ValueError(f"{self.name} must be one of {', '.join(map(repr, self.values))}, not {value!r}")
        if self._check is not None:
            self._check(cast(Any, value))

    def parse(self, variable: str, text: str) -> Any:
        """The value that an environment variable says. ValueError if its text is no value of the setting's type."""
        if isinstance(self.default, bool):
            found = _FLAGS.get(text.strip().lower())
            if found is None:
                raise ValueError(f"environment variable {variable} must be true or false, not {text!r}")
            return found
        if not isinstance(self.default, int | float):
            return text
        try:
            return type(self.default)(text)
        except ValueError:
            raise ValueError(f"environment variable {variable} must be a number, not {text!r}") from None

    @property
    def __signature__(self) -> inspect.Signature:
        default = True if self.types == (bool,) else _REQUIRED
        new_val = inspect.Parameter("new_val", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
        return inspect.Signature([new_val])

    def __reduce__(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return f"<setting {self.name}>"


class InContext(Setting[T]):
    """A field of the trace context, of the same name without "jax_" or "hloom_". `then` is called with a new value of
    the process."""

    def __init__(self, default: T, doc: str, *, then: Callable[[T], None] | None = None, **kinds: Any) -> None:
        super().__init__(default, doc, **kinds)
        self._then = then

    @property
    def value(self) -> T:
        """As this thread sees it."""
        return cast("T", getattr(current_context(), self.field))

    def get_global(self) -> T:
        """See `Setting`."""
        return cast("T", getattr(process_context(), self.field))

    def set(self, value: T) -> None:
        """See `Setting`."""
        self.check(value)
        update_process(**{self.field: value})
        if self._then is not None:
            self._then(value)

    def within(self, value: T) -> Override:
        """See `Setting`."""
        return Override(**{self.field: value})


class OfProcess(Setting[T]):
    """A value of the process alone. `write` takes a new one; `read` gives it, where another module keeps it."""

    def __init__(
        self, default: T, doc: str, write: Callable[[T], None], read: Callable[[], T] | None = None, **kinds: Any
    ) -> None:
        super().__init__(default, doc, **kinds)
        self._read, self._write = read, write

    @property
    def value(self) -> T:
        """That of the process."""
        return self.of_process if self._read is None else self._read()

    def set(self, value: T) -> None:
        """See `Setting`."""
        self.check(value)
        if self._read is not None or value != self.of_process:
            self._write(value)
            self.of_process = value

    def __call__(self, new_val: T = _REQUIRED) -> Block | Override:
        """TypeError: threads do not override it."""
        raise TypeError(f"{self.name} is a setting of the process: config.update({self.name!r}, ...) changes it")


class OfJax(Setting[Any]):
    """A setting of JAX that changes nothing here, for the reason that `doc` is.

    `only`: JAX has other values, which are an UnsupportedError here.
    """

    def __init__(self, default: Any, reason: str, *, only: bool = False, **kinds: Any) -> None:
        super().__init__(default, reason, **kinds)
        self.reason, self.only = reason, only

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        possible = f"Only {self.default!r}" if self.only else "Accepted"
        self.__doc__ = (
            f"{possible}: {self.reason}.\n\n    >>> import hloom\n"
            f"    >>> with hloom.{self.__name__}({self.default!r}):\n"
            f"    ...     hloom.config.{name} == {self.default!r}\n    True\n    "
        )

    def check(self, value: Any) -> None:
        """See `Setting`. UnsupportedError for a value that is possible in JAX alone."""
        if not self.only:
            super().check(value)
        elif type(value) is not type(self.default) or value != self.default:
            raise UnsupportedError(f"{self.name} can only be {self.default!r} here, not {value!r}: {self.reason}")


_KINDS = {type(None): "None", int: "a number"}
_FLAGS = {
    **dict.fromkeys(("0", "false", "f", "no", "n", "off"), False),
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
}


def _types_of(default: Any, values: Collection[Any]) -> tuple[type, ...]:
    if isinstance(default, bool):
        return (bool,)
    if isinstance(default, int | float):
        return (int, float)
    return (str, type(None)) if default is None or None in values else (str,)
