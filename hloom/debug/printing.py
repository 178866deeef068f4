"""`debug.print`: values of a program, formatted when it runs."""

from __future__ import annotations

import logging
import string
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..tracer.references.refs import Ref
from ..tracer.source import user_frame
from ..tracer.trees import tree
from .callbacks import PRINT, call_debug

_logger = logging.getLogger(f"{__name__.partition('.')[0]}.debug")


def _read(leaf: Any) -> Any:
    """What is in a reference; anything else itself."""
    return leaf[...] if isinstance(leaf, Ref) else leaf


def debug_print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Print ``fmt.format(*args, **kwargs)`` to sys.stdout when the program comes to this point. JAX's `debug.print`.

        hloom.debug.print("x = {x}, largest {:.3f}", x.max(), x=x)

    `fmt` is no f-string: values are known only when the program runs. Under `grad` primal values are printed; under
    `vmap` there is a line for each element. NumPy's print options are those at the time of this call. Without a format
    it returns a function of one: ``print(ordered=True)("{}", x)``.

    ordered, partitioned: accepted; effects have the order of the program, and there is one device.
    skip_format_check: accept arguments that the format does not use. _use_logging: log at INFO instead of printing.

    Raises:
      TypeError: `fmt` is no string.
      ValueError, IndexError, KeyError: the format and the arguments do not fit.

    >>> import hloom
    >>> from hloom import debug, numpy as jnp
    >>> f = hloom.jit(lambda x: debug.print("x = {x}, largest {}", x.max(), x=x))
    >>> f(jnp.arange(3))
    x = [0 1 2], largest 2
    """

    def print_it(fmt: str, *args: Any, **kwargs: Any) -> None:
        args, kwargs = tree.map(_read, (args, kwargs))
        _check(fmt, args, kwargs, skip_format_check)
        show = _logged(user_frame()) if _use_logging else _written
        call_debug("debug.print", _Printer(fmt, np.get_printoptions(), show), args, kwargs, PRINT, ordered)

    if fmt is not None:
        print_it(fmt, *args, **kwargs)
        return None
    if args or kwargs:
        raise TypeError(
            f"debug_print received unexpected arguments in the two-call form: {args} {kwargs}. Without a format "
            "it takes options only; values come with the format, in the second call."
        )
    return print_it


def debug_log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """As `debug.print`, but a message of the logger "hloom.debug" at the level INFO.

    >>> import hloom
    >>> from hloom import debug, numpy as jnp
    >>> f = hloom.jit(lambda x: debug.log("x = {}", x))
    >>> f(jnp.arange(3))  # shown where the logger "hloom.debug" has a handler
    """
    options = {"ordered": ordered, "partitioned": partitioned, "skip_format_check": skip_format_check}
    return debug_print(fmt, *args, _use_logging=True, **options, **kwargs)


class _Printer:
    """Formats and shows values."""

    def __init__(self, fmt: str, options: Any, show: Callable[[str], None]) -> None:
        self.fmt, self.options, self.show = fmt, options, show
        self.__name__ = fmt

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        with np.printoptions(**self.options):
            text = self.fmt.format(*args, **kwargs)
        self.show(text)


def _written(text: str) -> None:
    sys.stdout.write(text + "\n")


def _logged(frame: Any) -> Callable[[str], None]:
    """A function that logs a text as coming from the user's line."""
    file, line = ("<unknown>", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)

    def log(text: str) -> None:
        if _logger.isEnabledFor(logging.INFO):
            _logger.handle(_logger.makeRecord(_logger.name, logging.INFO, file, line, text, (), None))

    return log


class _Checker(string.Formatter):
    """Finds out whether a format and its arguments fit, without their values."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        if conversion not in (None, "s", "r", "a"):
            raise ValueError(f"Unknown conversion specifier {conversion!r}")
        return value

    def check_unused_args(
        self, used_args: set[int | str], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        unused = [a for k, a in enumerate(args) if k not in used_args]
        if unused:
            raise ValueError(f"Unused positional arguments to `hloom.debug.print`: {unused}")
        names = [k for k in kwargs if k not in used_args]
        if names:
            raise ValueError(
                f"Unused keyword arguments to `hloom.debug.print`: {names}. You may be passing an f-string "
                '(f"{x}"), which Python fills in at once: pass a plain string.'
            )


_checker = _Checker()


def _check(fmt: object, args: tuple[Any, ...], kwargs: dict[str, Any], skip: bool) -> None:
    """The errors of a format that does not fit its arguments."""
    if not isinstance(fmt, str):
        raise TypeError(f"the format of hloom.debug.print must be a string, not {type(fmt).__name__}")
    if not skip:
        _checker.format(fmt, *args, **kwargs)
