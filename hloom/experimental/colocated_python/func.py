"""Functions that run where their arguments are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, cast, overload

from ...tracer.arguments import ShapeDtypeStruct
from ...tracer.arrays.array import Array
from ...tracer.sharding.devices import CpuDevice
from ...tracer.sharding.mesh import Mesh
from ...tracer.sharding.shardings import Sharding
from ...tracer.trees import tree
from ...tracer.wrapping import wraps

__all__ = ["colocated_cpu_devices", "colocated_python", "make_callable"]

F = TypeVar("F", bound=Callable[..., Any])


@overload
def colocated_cpu_devices(devices_or_mesh: Mesh) -> Mesh: ...
@overload
def colocated_cpu_devices(devices_or_mesh: Sequence[CpuDevice]) -> Sequence[CpuDevice]: ...
def colocated_cpu_devices(devices_or_mesh: Mesh | Sequence[CpuDevice]) -> Mesh | Sequence[CpuDevice]:
    """The CPU devices on the hosts of devices, or of a mesh: these devices themselves, as all are CPU devices.

    >>> from hloom.experimental.colocated_python import colocated_cpu_devices
    >>> colocated_cpu_devices(hloom.devices()[:1])
    [CpuDevice(id=0)]
    """
    return devices_or_mesh if isinstance(devices_or_mesh, Mesh) else list(devices_or_mesh)


class Colocated(Protocol):
    """A function that runs where its arguments are."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

    def specialize(
        self,
        in_specs: Any = None,
        out_specs_fn: Callable[..., Any] | None = None,
        devices: Sequence[CpuDevice] | None = None,
    ) -> Colocated:
        """The function with facts about its calls; each can be given once."""
        ...


@dataclass(frozen=True)
class _Facts:
    in_specs: Any = None
    """(args, kwargs) as types."""
    out_specs_fn: Callable[..., Any] | None = None
    devices: tuple[CpuDevice, ...] | None = None


def colocated_python(fun: Callable[..., Any]) -> Colocated:
    """`fun`, a function of arrays, which runs as Python in the process of the devices that hold its arguments.

    The result's method `specialize(in_specs=None, out_specs_fn=None, devices=None)` returns the function for arguments
    of the types in_specs, a pair (args, kwargs) of trees of ShapeDtypeStruct; with results of the types
    out_specs_fn(*in_specs); on certain devices.

    Raises (when called):
      ValueError: an argument or a result is not a tree of arrays; there are no arguments, and no devices were given.
      TypeError: the types are other ones than those that were said.

    >>> from hloom.experimental.colocated_python import colocated_python
    >>> @colocated_python
    ... def scaled(x):
    ...     return x * 10
    >>> scaled(jnp.arange(3))
    Array([ 0, 10, 20], dtype=int32)
    """
    return make_callable(fun)


def make_callable(fun: Callable[..., Any], fun_sourceinfo: str | None = None, fun_signature: Any = None) -> Colocated:
    """As `colocated_python`; the two facts about `fun` are accepted, and not used."""
    return _with_facts(fun, _Facts())


def _with_facts(fun: Callable[..., Any], facts: _Facts) -> Colocated:
    @wraps(fun)
    def colocated(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs))
        given = [_type_of(leaf) for leaf in leaves]
        if facts.in_specs is not None:
            _compare("the arguments", facts.in_specs, tree.unflatten(structure, given))
        elif facts.devices is None and not leaves:
            raise ValueError(
                "No devices found. colocated_python function without input arguments must be first specialized with "
                "devices."
            )
        result = fun(*args, **kwargs)
        found = tree.map(_type_of, result)
        if facts.out_specs_fn is not None:
            types = facts.in_specs if facts.in_specs is not None else tree.unflatten(structure, given)
            _compare("the results", facts.out_specs_fn(*types[0], **types[1]), found)
        return result

    def specialize(
        in_specs: Any = None,
        out_specs_fn: Callable[..., Any] | None = None,
        devices: Sequence[CpuDevice] | None = None,
    ) -> Colocated:
        """The function with facts about its calls. ValueError for one that was given before."""
        changes: dict[str, Any] = {}
        place = None if devices is None else tuple(devices)
        for name, value in (("in_specs", in_specs), ("out_specs_fn", out_specs_fn), ("devices", place)):
            if value is not None:
                if getattr(facts, name) is not None:
                    raise ValueError(f"{name} already specified")
                changes[name] = value
        return _with_facts(fun, replace(facts, **changes))

    colocated.specialize = specialize  # type: ignore[attr-defined]
    return cast(Colocated, colocated)


def _type_of(x: Any) -> ShapeDtypeStruct:
    if not isinstance(x, Array):
        raise ValueError(f"colocated_python only supports hloom.Array as input and output, but got {type(x)}.")
    return ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)


def _compare(what: str, said: Any, found: Any) -> None:
    """TypeError unless two trees of types are equal; a type without a sharding leaves it open."""
    types, structure = tree.flatten(said)
    others, given = tree.flatten(found)
    fits = structure == given and all(
        (a.shape, a.dtype) == (b.shape, b.dtype) and (not isinstance(a.sharding, Sharding) or a.sharding == b.sharding)
        for a, b in zip(types, others, strict=True)
    )
    if not fits:
        raise TypeError(f"colocated_python: {what} are {found}, and were specified as {said}")
