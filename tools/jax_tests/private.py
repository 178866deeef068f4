"""Names of JAX that are not here: they can be imported, and a test that uses one fails with `PrivateName`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, ClassVar


class PrivateName(AttributeError):
    """A test used a name that JAX keeps to itself."""


class Private(ModuleType):
    """A name of JAX that is not here, a module or a value. Importing it, decorating with it and deriving from it work;
    using it in a test does not."""

    testing = False
    """Whether a test runs now."""

    known: ClassVar[dict[tuple[str, str], Any]] = {}
    """Values in public modules that hloom does not have, by module and name."""

    def __init__(self, path: str, *_: Any) -> None:
        super().__init__(path)
        self.__path__: list[str] = []

    def _use(self) -> None:
        if Private.testing:
            raise PrivateName(f"not here: jax.{self._path()}")

    def _path(self) -> str:
        return self.__name__.partition(".")[2]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if (self._path(), name) in Private.known:
            return Private.known[self._path(), name]
        package = sys.modules.get(self.__name__.rpartition(".")[0])
        if package is not None and name in vars(package).get("__all__", ()):
            return getattr(package, name)  # hloom does not divide this public package as JAX does
        self._use()
        return Private(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        self._use()
        return self

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (object,)

    def __iter__(self) -> Any:
        self._use()
        return iter((self,))  # a list of cases has one, so that its tests are there

    def __getitem__(self, key: Any) -> Any:
        self._use()
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        self._use()

    def __instancecheck__(self, value: object) -> bool:
        self._use()
        return False

    __or__ = __ror__ = __getitem__

    def __lt__(self, other: Any) -> bool:
        self._use()
        return False  # than the version that is the newest

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __enter__(self) -> Any:
        self._use()
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def __hash__(self) -> int:
        return hash(self.__name__)
