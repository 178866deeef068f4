"""`hloom.experimental.serialize_executable`: compiled programs as bytes, with names of jax.experimental's module.

The bytes hold the program as HLO text. The program is compiled again where it is loaded, or read from that machine's
store; so they are good on every machine and for every version that reads the text, which JAX's are not.
"""

import pickle as _pickle
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

from ..namespaces import publish as _publish
from ..tracer.sharding.devices import devices as _known_devices
from ..tracer.stages import Compiled as _Compiled
from ..tracer.trees.tree import PyTreeDef as _PyTreeDef

__all__ = ["deserialize_and_load", "serialize"]

_MAGIC = b"hloom executable 1\n"


def serialize(compiled: _Compiled) -> tuple[bytes, _PyTreeDef, _PyTreeDef]:
    """(bytes, structure of the arguments, structure of the result) for a result of ``jit(f).lower(...).compile()``.

    ValueError for a program that is more than its text: one that calls Python, reads mutable arrays, or is for several
    devices.

    >>> import hloom, hloom.numpy as jnp
    >>> from hloom.experimental.serialize_executable import deserialize_and_load, serialize
    >>> double = hloom.jit(lambda x: 2 * x).lower(jnp.ones(3)).compile()
    >>> deserialize_and_load(*serialize(double))(jnp.array([1.0, 2.0, 3.0]))
    Array([2., 4., 6.], dtype=float32)
    """
    if not isinstance(compiled, _Compiled):
        raise TypeError(f"serialize takes a result of `jit(f).lower(...).compile()`, not {type(compiled).__name__}")
    try:
        data = _pickle.dumps(compiled.made_from)
    except TypeError as error:
        raise ValueError(f"Compilation does not support serialization: {error}") from None
    return _MAGIC + data, compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: _PyTreeDef,
    out_tree: _PyTreeDef,
    backend: _Any = None,
    execution_devices: _Sequence[_Any] | None = None,
) -> _Compiled:
    """The compiled program of the bytes that `serialize` returned, with the structures that came with them.

    The bytes are a pickle: load none that you do not trust. backend: "cpu", or None. execution_devices: the first
    device, or None. ValueError for bytes that `serialize` did not return, for other structures, for other devices.

    >>> import hloom
    >>> from hloom.experimental.serialize_executable import deserialize_and_load, serialize
    >>> deserialize_and_load(*serialize(hloom.jit(hloom.numpy.sin).lower(0.0).compile()))(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    there = _known_devices(backend) if backend is None or isinstance(backend, str) else _known_devices()
    if execution_devices is not None and list(execution_devices) != list(there[:1]):
        raise ValueError(f"a program is loaded for one device, {there[0]}, not for {list(execution_devices)}")
    if not bytes(serialized[: len(_MAGIC)]) == _MAGIC:
        raise ValueError("deserialize_and_load: these bytes are not from `serialize` of this version")
    try:
        lowered, options, target = _pickle.loads(serialized[len(_MAGIC) :])
    except Exception as error:  # of any class, as the bytes may be anything
        raise ValueError(f"deserialize_and_load: the bytes are damaged: {error}") from error
    for what, given, own in (("in", in_tree, lowered.in_tree), ("out", out_tree, lowered.out_tree)):
        if given != own:
            raise ValueError(f"deserialize_and_load: {what}_tree is {given}, and the program has {own}")
    compiled: _Compiled = lowered.compile(options, target=target)
    return compiled


_publish(__name__, examples=("from hloom.experimental import serialize_executable",))
