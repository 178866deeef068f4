"""A name of JAX's inside that hloom has no counterpart of. It can be imported; its use raises an error."""

from __future__ import annotations

from typing import Any

from ..namespaces.jax_names import reason
from ..namespaces.not_written import NotWritten

_PACKAGE = __name__.partition(".")[0]
_SUBJECTS = {
    "pallas mosaic tpu cudnn tpu_custom_call": "it is for GPUs and TPUs",
    "interpreters.mlir lib.mlir mlir": f"it makes MLIR; {_PACKAGE} makes HLO, which jit(f).lower(...).as_text() shows",
    "interpreters.pxla interpreters.partial_eval interpreters.batching interpreters.ad linear_util pjit": (
        "it is a part of JAX's tracing, which works on jaxprs; programs are traced to HLO here"
    ),
    "export": f"programs are exported as StableHLO by it; {_PACKAGE} writes and reads HLO text",
    "xla_bridge distributed clusters lib": "it is JAX's way to XLA's clients, which are not used here",
    "compilation_cache compiler cache_key": "compiled programs are stored by themselves, in HLOOM_CACHE_DIR",
}
"""Why names are not here, by modules of `jax._src`."""


class Internal(NotWritten):
    """The class of such names. Annotations may name them; all else is an UnsupportedError, also `isinstance`: the
    class in JAX may be that of objects which have another class here."""

    _why: tuple[str, str]

    def __new__(meta, name: str, bases: tuple[type, ...], contents: dict[str, Any]) -> Internal:
        for base in bases:
            if isinstance(base, Internal):
                base._refuse()
        return super().__new__(meta, name, bases, contents)

    def _explain(cls) -> str:
        return explanation(*cls._why)

    def __getitem__(cls, parameters: Any) -> Any:
        return cls  # in an annotation

    def __repr__(cls) -> str:
        return f"<{cls._why[0]}, which {_PACKAGE} does not have>"

    __instancecheck__ = __subclasscheck__ = __iter__ = __len__ = __enter__ = __contains__ = NotWritten._refuse
    __bool__ = __lt__ = __gt__ = __add__ = __setitem__ = NotWritten._refuse


def internal(name: str, public: str) -> Internal:
    """An object in the place of a name of `jax._src`. public: a public name of JAX for the same, if there is one."""
    module, _, last = name.rpartition(".")
    return Internal(last, (), {"__module__": module, "_why": (name, public)})


def explanation(name: str, public: str) -> str:
    """What to say of a name of `jax._src` at its use. public: a public name of JAX for the same, if there is one."""
    path = name.removeprefix("jax._src.")
    space, _, last = public.removeprefix("jax").lstrip(".").rpartition(".")
    why = reason(space, last) if public else None
    if why is None:
        found = [
            (prefix, said)
            for prefixes, said in _SUBJECTS.items()
            for prefix in prefixes.split()
            if f"{path}.".startswith(f"{prefix}.")
        ]
        why = max(found)[1] if found else f"it is inside of JAX, and {_PACKAGE} has no counterpart of it"
    known = f" (it is {public} of JAX)" if public else ""
    return f"{name}{known} can be imported, but not used: {why}"
