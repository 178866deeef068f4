"""The version of JAX that programs see: `jax.__version__`, `jax.version`, `jaxlib`, and the distributions' metadata."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

from ..namespaces.jax_names import VERSION
from ..tracer.settings.config import config


def version() -> str:
    """That of the setting `hloom_jax_version`."""
    return config.hloom_jax_version or VERSION


class Versioned(ModuleType):
    """A module with the version of JAX; a package also has it as a module. The setting may change while the program
    runs."""

    def __getattr__(self, name: str) -> Any:
        if name == "version" and not self.__name__.endswith(".version"):
            self.version: Versioned = Versioned(f"{self.__name__}.version")
            return self.version
        if name in ("__version__", "_version", "_minimum_jaxlib_version"):
            return version()
        if name in ("__version_info__", "_minimum_jaxlib_version_info"):
            return tuple(int(number) for number in re.findall(r"\d+", version())[:3])
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
