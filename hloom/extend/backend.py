"""`hloom.extend.backend`: the clients that own devices, with the names of jax.extend.backend."""

from collections.abc import Callable as _Callable
from typing import Any as _Any
from typing import Protocol as _Protocol

from ..namespaces import publish as _publish
from ..tracer.caches import clear_caches as _clear_caches
from ..tracer.caches import on_clear as _on_clear
from ..tracer.settings.config import default_device as _default_device
from ..tracer.sharding.devices import Client as _Client
from ..tracer.sharding.devices import CpuDevice as _CpuDevice
from ..tracer.sharding.devices import devices as _devices

__all__ = [
    "backend_xla_version",
    "backends",
    "clear_backends",
    "clear_in_memory_compilation_cache",
    "get_backend",
    "get_default_device",
    "register_backend_cache",
]


def backends() -> dict[str, _Client]:
    """The clients by platform: there is one.

    >>> from hloom.extend.backend import backends
    >>> backends()
    {'cpu': <hloom client of platform cpu>}
    """
    return {"cpu": get_backend()}


def get_backend(platform: str | _Client | None = None) -> _Client:
    """The client of a platform. RuntimeError for another than "cpu".

    >>> from hloom.extend.backend import get_backend
    >>> get_backend().platform
    'cpu'
    """
    return _devices(platform)[0].client


def backend_xla_version(platform: str | None = None) -> int | None:
    """The version of XLA: None, there is no XLA. RuntimeError for another platform than "cpu".

    >>> from hloom.extend.backend import backend_xla_version
    >>> backend_xla_version()
    """
    get_backend(platform)
    return None


def get_default_device() -> _CpuDevice:
    """The device on which a program runs that names none.

    >>> from hloom.extend.backend import get_default_device
    >>> get_default_device()
    CpuDevice(id=0)
    """
    found = _default_device.value
    return _devices()[0] if found is None or isinstance(found, str) else found


def clear_backends() -> None:
    """Drop all traced and compiled programs: `hloom.clear_caches`. Devices stay, and arrays on them."""
    _clear_caches()


clear_in_memory_compilation_cache = clear_backends


class _Clearable(_Protocol):
    cache_clear: _Callable[[], None]


def register_backend_cache(cache: _Clearable | _Any, for_what: str = "") -> None:
    """Have `hloom.clear_caches` call `cache.cache_clear()`, as of functions that `functools.lru_cache` wraps.

    for_what: the name of the cache, for people.

    >>> import functools
    >>> from hloom.extend.backend import register_backend_cache
    >>> @functools.lru_cache
    ... def table(n): return list(range(n))
    >>> register_backend_cache(table, "tables")
    """
    _on_clear(cache.cache_clear)


_publish(__name__)
