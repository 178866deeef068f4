"""A name of JAX's inside that hloom has no counterpart of. It can be imported; its use raises an error."""

from __future__ import annotations

import typing
from typing import Any, NoReturn

from ..hlo.errors import UnsupportedError
from ..namespaces.jax_names import reason

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


class Internal:
    """In place of a class, a function or a value. Annotations may name it; all else is an UnsupportedError."""

    __slots__ = ("_why",)

    def __init__(self, name: str, public: str) -> None:
        self._why = name, public

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError(explanation(*self._why))

    __call__ = __instancecheck__ = __subclasscheck__ = __mro_entries__ = __iter__ = __len__ = _refuse
    __enter__ = __contains__ = __bool__ = __lt__ = __gt__ = __add__ = __setitem__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python's own questions, such as that for __wrapped__
            raise AttributeError(name)
        self._refuse()

    def __getitem__(self, parameters: Any) -> Any:
        return self  # in an annotation

    def __or__(self, other: Any) -> Any:
        return typing.Union[self, other]  # noqa: UP007  # the operator is what is defined here

    def __ror__(self, other: Any) -> Any:
        return typing.Union[other, self]  # noqa: UP007

    def __repr__(self) -> str:
        return f"<{self._why[0]}, which {_PACKAGE} does not have>"


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
