"""jax._src.xla_bridge: which backends run. There is one, and it always does."""

from ...namespaces import publish as _publish
from ...tracer.sharding.devices import devices as _devices

__all__ = ["_backends", "backends_are_initialized", "canonicalize_platform", "is_known_platform", "known_platforms"]

_backends = {"cpu": _devices()[0].client}


def backends_are_initialized() -> bool:
    """Whether there are clients: there are."""
    return True


def known_platforms() -> set[str]:
    """The platforms that programs may ask for."""
    return set(_backends)


def is_known_platform(platform: str) -> bool:
    """Whether programs may ask for it."""
    return platform in _backends


def canonicalize_platform(platform: str) -> str:
    """The platform itself. RuntimeError for "gpu", which there is none of."""
    if platform == "gpu":
        raise RuntimeError("Unknown backend: 'gpu' requested. Platforms present are: cpu")
    return platform


_publish(__name__)
