"""Settings as flags of absl, which programs that use absl's `app.run` ask for. absl is imported only then."""

from __future__ import annotations

import itertools
import sys
from importlib import import_module
from typing import Any

_done = {"defined": False, "parsed": False}
"""Once in a process: a flag cannot be defined twice."""


def define(config: Any) -> None:
    """A flag for each setting; those on the command line are set once `absl.app` has read it."""
    if _define(config):
        import_module("absl.app").call_after_init(lambda: _take(config))


def parse(config: Any) -> None:
    """Read the arguments of the command line that begin with --jax, up to the first "--", and set their values."""
    if _done["parsed"]:
        return
    _done["parsed"] = True
    _define(config)
    before = itertools.takewhile(lambda argument: argument != "--", sys.argv)
    given = [argument for argument in before if argument.startswith("--jax")]
    import_module("absl.flags").FLAGS(["", *given], known_only=True)
    _take(config)


def _define(config: Any) -> bool:
    """Whether flags were defined now."""
    if _done["defined"]:
        return False
    _done["defined"] = True
    flags = import_module("absl.flags")
    for name, value in config.values.items():
        text = f"The setting {name} of hloom.config."
        match value:
            case bool():
                flags.DEFINE_bool(name, value, text)
            case int():
                flags.DEFINE_integer(name, value, text)
            case float():
                flags.DEFINE_float(name, value, text)
            case _:
                flags.DEFINE_string(name, None if value is None else str(value), text)
    return True


def _take(config: Any) -> None:
    """Set the values of the command line."""
    flags = import_module("absl.flags").FLAGS
    for name in config.values:
        if name in flags and flags[name].present:
            config.update(name, flags[name].value)
