"""What programs say about shardings: primitives that change no value of the whole arrays.

`sharding_constraint`: the compiler must divide an array so. `full_to_shard` and `shard_to_full`: the borders of what
`shard_map` maps; between them an array is each device's own, of the type of one part. In HLO they are the custom calls
"Sharding", "SPMDFullToShardShape" and "SPMDShardToFullShape", with XLA's text of the sharding; `hlo/passes/partition`
knows them. Their derivatives and rules of vmap are in `autodiff/sharding_rules.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..hlo.builder import make_computation, make_parameter, make_tuple
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.ops.custom_call import CustomCallAttributes
from ..hlo.records import dataclass
from ..hlo.shape import Shape
from .array import Array
from .aval import ShapedArray
from .core import Call, Primitive, Value, bind_call
from .hlo_shardings import assignment_of, open_dimensions, to_hlo
from .shardings import ManualSharding, NamedSharding, Sharding
from .spmd import SHARDINGS, move
from .varying import NONE

__all__ = ["CONSTRAINT", "FULL_TO_SHARD", "SHARD_TO_FULL", "Border", "constrain", "full_to_shard", "shard_to_full"]


@dataclass(frozen=True, slots=True)
class Border:
    """The parameters of `full_to_shard` and `shard_to_full`."""

    sharding: NamedSharding
    shares: bool
    """What is on several devices is shared among them by derivatives: the function's own collectives do not say which
    values are the same on devices (`check_vma=False`)."""


def _constrained(call: Call, arrays: Sequence[Any]) -> list[Any]:
    (x,) = arrays
    return [move(x, call.params)]


def _cut(call: Call, arrays: Sequence[Any]) -> list[Any]:
    (x,), border = arrays, call.params
    whole = move(x, border.sharding)
    part = ShapedArray(border.sharding.shard_shape(x.aval.shape), x.aval.dtype)
    return [Array.from_shards(part, whole._shards, ManualSharding(border.sharding.mesh))]


def _joined(call: Call, arrays: Sequence[Any]) -> list[Any]:
    (x,), border = arrays, call.params
    if not isinstance(x.sharding, ManualSharding):  # the same value on all devices
        x = move(x, NamedSharding(border.sharding.mesh, type(border.sharding.spec)()))
    (result,) = call.computation.root.shape.elements
    return [Array.from_shards(ShapedArray(result.dimensions, x.aval.dtype), x._shards, border.sharding)]


CONSTRAINT = Primitive("sharding_constraint", evaluate=_constrained, is_linear=True)
FULL_TO_SHARD = Primitive(
    "full_to_shard", evaluate=_cut, is_linear=True, vma=lambda call, vmas: _axes_of_parts(call.params)
)
SHARD_TO_FULL = Primitive("shard_to_full", evaluate=_joined, is_linear=True, vma=lambda call, vmas: NONE)


def _axes_of_parts(border: Border) -> frozenset[Any]:
    return NONE if border.shares else frozenset(border.sharding.spec.axes())


def constrain(x: Value, sharding: Sharding) -> Value:
    """`x`, which the compiler must divide so."""
    meaning = _meaning("sharding_constraint", x.aval.hlo, x.aval.hlo, sharding)
    (found,) = bind_call(Call(CONSTRAINT, meaning, sharding, "sharding_constraint", _shown(sharding)), [x])
    return found


def full_to_shard(x: Value, sharding: NamedSharding, shares: bool) -> Value:
    """Each device's part of `x`."""
    part = ShapedArray(sharding.shard_shape(x.aval.shape), x.aval.dtype).hlo
    meaning = _meaning("full_to_shard", x.aval.hlo, part, sharding)
    (found,) = bind_call(Call(FULL_TO_SHARD, meaning, Border(sharding, shares), "full_to_shard", _shown(sharding)), [x])
    return found


def shard_to_full(x: Value, sharding: NamedSharding, shares: bool) -> Value:
    """The array whose part on each device is its `x`."""
    counts = sharding.parts(x.aval.ndim)
    sizes = tuple([n * c for n, c in zip(x.aval.shape, counts, strict=True)])
    meaning = _meaning("shard_to_full", x.aval.hlo, ShapedArray(sizes, x.aval.dtype).hlo, sharding)
    (found,) = bind_call(Call(SHARD_TO_FULL, meaning, Border(sharding, shares), "shard_to_full", _shown(sharding)), [x])
    return found


def _shown(sharding: Sharding) -> tuple[tuple[str, str], ...]:
    return (("sharding", str(getattr(sharding, "spec", sharding))),)


@lru_cache(maxsize=1024)
def _meaning(name: str, operand: Shape, result: Shape, sharding: Sharding) -> HloComputation:
    whole = result if name == "shard_to_full" else operand
    found = to_hlo(sharding, whole.rank, assignment_of(sharding.device_set)).to_text()
    is_open = open_dimensions(sharding)
    config = f"unspecified_dims=[{','.join(map(str, is_open))}]" if is_open else ""
    x = make_parameter(0, operand)

    def call(target: str, y: HloInstruction, shape: Shape, text: str, config: str = "") -> HloInstruction:
        attributes = CustomCallAttributes(target, config)
        return HloInstruction(Opcode.CUSTOM_CALL, shape, (y,), attributes, annotations=(("sharding", text),))

    if name == "sharding_constraint":
        y = call("Sharding", x, operand, found, config)
    elif name == "full_to_shard":
        y = call("SPMDFullToShardShape", call("Sharding", x, operand, found), result, "{manual}")
    else:
        y = call("SPMDShardToFullShape", call("Sharding", x, operand, "{manual}"), result, found)
    return make_computation(name, make_tuple([y]), [x])


SHARDINGS[CONSTRAINT] = lambda call: call.params
SHARDINGS[FULL_TO_SHARD] = SHARDINGS[SHARD_TO_FULL] = lambda call: call.params.sharding
