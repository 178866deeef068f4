"""The targets by name."""

from __future__ import annotations

from .errors import UnsupportedError
from .target import CpuTarget, Target
from .tpu_target import TpuTarget

TARGETS: dict[str, type[Target]] = {t.name: t for t in (CpuTarget, TpuTarget)}


def target_named(target: str | Target) -> Target:
    """The target of this name with its default options; a `Target` is returned as it is.

    UnsupportedError for a name that no target has.

    >>> from hloom import hlo
    >>> hlo.target_named("tpu").name
    'tpu'
    """
    if isinstance(target, Target):
        return target
    found = TARGETS.get(target)
    if found is None:
        names = " and ".join(repr(name) for name in TARGETS)
        raise UnsupportedError(f"there is no target {target!r}; there are {names}, and instances of hlo.Target")
    return found()
