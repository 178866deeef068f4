"""Statements of programs about shardings: primitives that change no value of the whole arrays.

`sharding_constraint`: the compiler must divide an array so. `full_to_shard` and `shard_to_full`: the borders of a
`shard_map`; between them an array is each device's own, of the type of one part. In HLO they are the custom calls
"Sharding", "SPMDFullToShardShape" and "SPMDShardToFullShape", with XLA's text of the sharding; `hlo/passes/partition`
knows them. Their derivatives and rules of vmap are in `hloom/lax/sharding_rules.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ...hlo.builder import make_computation, make_parameter, make_tuple
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloComputation
from ...hlo.shape import Shape
from ...hlo.support.loading import load
from ..arrays.array import Array
from ..aval import ShapedArray
from ..core import Call, Primitive, Value, bind_call, run_meaning
from .borders import Border, crossed, stated_as
from .hlo_shardings import assignment_of, open_dimensions, over_abstract_mesh, to_hlo
from .mesh import AbstractMesh, Mesh
from .shardings import ManualSharding, NamedSharding, Sharding, undivided
from .spmd import SHARDINGS, move
from .varying import NONE


def _constrained(call: Call, arrays: Sequence[Any]) -> list[Any]:
    (x,) = arrays
    return [move(x, call.params)]


def parts_become_terms(aval: ShapedArray, sharding: Sharding) -> bool:
    """Whether axes that divide a value of this type are unreduced in `sharding`: each device keeps its part."""
    spec = getattr(sharding, "spec", None)
    return bool(spec is not None and aval.division is not None and spec.unreduced & {*aval.division.spec.axes()})


def _cut(call: Call, arrays: Sequence[Any]) -> list[Any]:
    (x,), border = arrays, call.params
    _check_direct(border)
    whole = move(x, border.sharding)
    part = ShapedArray(border.sharding.shard_shape(x.aval.shape), x.aval.dtype)
    return [Array.from_shards(part, whole._shards, ManualSharding(border.sharding.mesh))]


def _joined(call: Call, arrays: Sequence[Any]) -> list[Any]:
    (x,), border = arrays, call.params
    _check_direct(border)
    if not isinstance(x.sharding, ManualSharding):  # the same value on all devices
        x = move(x, NamedSharding(border.sharding.mesh, type(border.sharding.spec)()))
    (result,) = call.computation.root.shape.elements
    return [Array.from_shards(ShapedArray(result.dimensions, x.aval.dtype), x._shards, border.sharding)]


def _check_direct(border: Border) -> None:
    if not border.is_whole:
        raise UnsupportedError(
            f"a shard_map over the axes {border.names} of {border.sharding.mesh} runs in compiled programs only, not "
            "under hloom.disable_jit"
        )


CONSTRAINT = Primitive("sharding_constraint", evaluate=_constrained, is_linear=True)
FULL_TO_SHARD = Primitive(
    "full_to_shard", evaluate=_cut, is_linear=True,
    vma=lambda call, vmas: NONE if call.params.shares else vmas[0] | call.params.varying,
)  # fmt: skip
SHARD_TO_FULL = Primitive(
    "shard_to_full", evaluate=_joined, is_linear=True,
    vma=lambda call, vmas: frozenset(call.params.around) if call.params.shares else vmas[0] - set(call.params.names),
)  # fmt: skip


PARTIAL_SUM = Primitive("partial_sum", evaluate=run_meaning, is_transparent=True)
"""A sum with a term on each device. Its meaning is the program of one device, which computes a term; its `params` are a
computation of the sum from whole arrays."""


def constrain(x: Value, sharding: Sharding) -> Value:
    """`x`, which the compiler must divide so. Its type says so for Explicit axes."""
    wanted = x.aval.divided(sharding).division  # from now on types say something about devices
    source = x.aval.division
    sets = [NONE if d is None else d.spec.unreduced for d in (source, wanted)]
    if sets[0] == sets[1] or not isinstance(getattr(sharding, "mesh", None), Mesh):
        source = None
    elif source is None:
        source = undivided(x.aval.hlo.rank, sharding.mesh.abstract_mesh)  # type: ignore[attr-defined]
    meaning = _constraint_meaning(x.aval.hlo, sharding, source)
    (found,) = bind_call(Call(CONSTRAINT, meaning, sharding, "sharding_constraint", _shown(sharding)), [x])
    return found


def full_to_shard(x: Value, border: Border) -> Value:
    """Each device's part of `x`."""
    part = ShapedArray(border.sharding.shard_shape(x.aval.shape), x.aval.dtype).hlo
    meaning = _border_meaning("full_to_shard", x.aval.hlo, part, border)
    (found,) = bind_call(Call(FULL_TO_SHARD, meaning, border, "full_to_shard", _shown(border.sharding)), [x])
    return found


def shard_to_full(x: Value, border: Border) -> Value:
    """The array with `x` as its part on each device."""
    counts = border.sharding.parts(x.aval.ndim)
    sizes = tuple([n * c for n, c in zip(x.aval.shape, counts, strict=True)])
    meaning = _border_meaning("shard_to_full", x.aval.hlo, ShapedArray(sizes, x.aval.dtype).hlo, border)
    (found,) = bind_call(Call(SHARD_TO_FULL, meaning, border, "shard_to_full", _shown(border.sharding)), [x])
    return found


def _shown(sharding: Sharding) -> tuple[tuple[str, str], ...]:
    return (("sharding", str(getattr(sharding, "spec", sharding))),)


@lru_cache(maxsize=1024)
def _constraint_meaning(shape: Shape, sharding: Sharding, source: NamedSharding | None = None) -> HloComputation:
    """`source`: how the array is divided, if terms must be added or made."""
    x = parameter = make_parameter(0, shape)
    if source is not None:
        assert isinstance(sharding, NamedSharding), f"{sharding} has a mesh"
        x, _ = load(".terms", __package__).converted(x, source.update(mesh=sharding.mesh), sharding)
    if isinstance(getattr(sharding, "mesh", None), AbstractMesh):
        assert isinstance(sharding, NamedSharding), f"{sharding} has a mesh"
        text = over_abstract_mesh(sharding, shape.rank).to_text()
    else:
        text = to_hlo(sharding, shape.rank, assignment_of(sharding.device_set)).to_text()
    y = stated_as("Sharding", x, shape, text, open_dimensions(sharding))
    return make_computation("sharding_constraint", make_tuple([y]), [parameter])


@lru_cache(maxsize=1024)
def _border_meaning(name: str, operand: Shape, result: Shape, border: Border) -> HloComputation:
    x = make_parameter(0, operand)
    return make_computation(name, make_tuple([crossed(name, x, result, border)]), [x])


SHARDINGS[CONSTRAINT] = lambda call: call.params
SHARDINGS[FULL_TO_SHARD] = SHARDINGS[SHARD_TO_FULL] = lambda call: call.params.sharding
