"""Statements of programs about shardings: primitives that change no value of the whole arrays.

`sharding_constraint`: the compiler must divide an array so. `full_to_shard` and `shard_to_full`: the borders of a
`shard_map`; between them an array is each device's own, of the type of one part. In HLO they are the custom calls
"Sharding", "SPMDFullToShardShape" and "SPMDShardToFullShape", with XLA's text of the sharding; `hlo/passes/partition`
knows them. Their derivatives and rules of vmap are in `hloom/lax/sharding_rules.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ...hlo.builder import make_computation, make_parameter, make_tuple
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.custom_call import CustomCallAttributes
from ...hlo.shape import Shape
from ...hlo.support.records import dataclass
from ..arrays.array import Array
from ..aval import ShapedArray
from ..core import Call, Primitive, Value, bind_call
from .hlo_shardings import assignment_of, manual_hlo, open_dimensions, over_abstract_mesh, to_hlo
from .mesh import AbstractMesh
from .partition_spec import PartitionSpec
from .shardings import ManualSharding, NamedSharding, Sharding
from .spmd import SHARDINGS, move
from .varying import NONE


@dataclass(frozen=True, slots=True)
class Border:
    """The parameters of `full_to_shard` and `shard_to_full`."""

    sharding: NamedSharding
    shares: bool
    """Derivatives divide a value on several devices among them: the function's own collectives do not say which values
    are the same on devices (`check_vma=False`)."""
    names: tuple[Any, ...]
    """The axes that the function of this `shard_map` knows."""
    around: tuple[Any, ...] = ()
    """Those that the functions around it know."""

    @property
    def is_whole(self) -> bool:
        """Whether the function works on whole arrays of its caller: no `shard_map` is around it, and it knows all."""
        return not self.around and self.manual_text(0) == "{manual}"

    def manual_text(self, rank: int) -> str:
        """How an array within is divided."""
        return self._text(rank, (*self.names, *self.around), False)

    def whole_text(self, rank: int) -> str:
        """How an array outside is divided."""
        return self._text(rank, self.around, True)

    @property
    def regions(self) -> tuple[str, str]:
        """How a scalar within is divided, and one outside; "" where no axes are left to the partitioner."""
        texts = [self._text(0, names, False) for names in ((*self.names, *self.around), self.around)]
        return "" if texts[0] == "{manual}" else texts[0], texts[1] if self.around else ""

    def _text(self, rank: int, manual: tuple[Any, ...], divided: bool) -> str:
        sharding = self.sharding if divided else NamedSharding(self.sharding.mesh, PartitionSpec())
        if not manual:
            return to_hlo(sharding, rank, assignment_of(sharding.device_set)).to_text()
        return manual_hlo(sharding, rank, manual).to_text()


def _constrained(call: Call, arrays: Sequence[Any]) -> list[Any]:
    (x,) = arrays
    return [move(x, call.params)]


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
    vma=lambda call, vmas: NONE if call.params.shares else vmas[0] | set(call.params.sharding.spec.axes()),
)  # fmt: skip
SHARD_TO_FULL = Primitive(
    "shard_to_full", evaluate=_joined, is_linear=True,
    vma=lambda call, vmas: frozenset(call.params.around) if call.params.shares else vmas[0] - set(call.params.names),
)  # fmt: skip


def constrain(x: Value, sharding: Sharding) -> Value:
    """`x`, which the compiler must divide so. Its type says so for Explicit axes."""
    x.aval.divided(sharding)  # from now on types say something about devices
    meaning = _constraint_meaning(x.aval.hlo, sharding)
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


def _stated(
    target: str, x: HloInstruction, shape: Shape, text: str, is_open: Sequence[int] = (), region: str = ""
) -> HloInstruction:
    """A custom call with a result that is divided as `text` says; dimensions in `is_open` may be divided further."""
    config = f"unspecified_dims=[{','.join(map(str, is_open))}]" if is_open else ""
    attributes = CustomCallAttributes(target, config)
    found = HloInstruction(Opcode.CUSTOM_CALL, shape, (x,), attributes, annotations=(("sharding", text),))
    return replace(found, frontend_attributes=(("hloom.region", region),)) if region else found


@lru_cache(maxsize=1024)
def _constraint_meaning(shape: Shape, sharding: Sharding) -> HloComputation:
    if isinstance(getattr(sharding, "mesh", None), AbstractMesh):
        assert isinstance(sharding, NamedSharding), f"{sharding} has a mesh"
        text = over_abstract_mesh(sharding, shape.rank).to_text()
    else:
        text = to_hlo(sharding, shape.rank, assignment_of(sharding.device_set)).to_text()
    x = make_parameter(0, shape)
    y = _stated("Sharding", x, shape, text, open_dimensions(sharding))
    return make_computation("sharding_constraint", make_tuple([y]), [x])


@lru_cache(maxsize=1024)
def _border_meaning(name: str, operand: Shape, result: Shape, border: Border) -> HloComputation:
    inside, outside = border.manual_text(operand.rank), border.whole_text(operand.rank)
    within, around = border.regions
    is_open = range(operand.rank) if within else ()  # along other axes the partitioner may cut
    x = make_parameter(0, operand)
    if name == "full_to_shard":
        y = _stated("Sharding", x, operand, outside, is_open, around)
        z = _stated("SPMDFullToShardShape", y, result, inside, is_open, within)
    else:
        y = _stated("Sharding", x, operand, inside, is_open, within)
        z = _stated("SPMDShardToFullShape", y, result, outside, is_open, around)
    return make_computation(name, make_tuple([z]), [x])


SHARDINGS[CONSTRAINT] = lambda call: call.params
SHARDINGS[FULL_TO_SHARD] = SHARDINGS[SHARD_TO_FULL] = lambda call: call.params.sharding
