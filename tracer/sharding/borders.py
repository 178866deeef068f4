"""The borders of a `shard_map` as instructions: between whole arrays and the parts that devices have of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.custom_call import CustomCallAttributes
from ...hlo.shape import Shape
from ...hlo.sharding import unspecified_dims
from ...hlo.support.records import dataclass
from .hlo_shardings import assignment_of, manual_hlo, to_hlo
from .partition_spec import PartitionSpec
from .shardings import NamedSharding


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
    def varying(self) -> frozenset[Any]:
        """The axes along which devices have different parts, or terms."""
        return self.sharding.spec.unreduced.union(self.sharding.spec.axes())

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


def stated_as(
    target: str, x: HloInstruction, shape: Shape, text: str, is_open: Sequence[int] = (), region: str = ""
) -> HloInstruction:
    """A custom call with a result that is divided as `text` says; dimensions in `is_open` may be divided further."""
    attributes = CustomCallAttributes(target, unspecified_dims(is_open))
    found = HloInstruction(Opcode.CUSTOM_CALL, shape, (x,), attributes, annotations=(("sharding", text),))
    return replace(found, frontend_attributes=(("hloom.region", region),)) if region else found


def crossed(name: str, x: HloInstruction, result: Shape, border: Border) -> HloInstruction:
    """`x` on the other side of a border, which `name` says."""
    operand = x.shape
    inside, outside = border.manual_text(operand.rank), border.whole_text(operand.rank)
    within, around = border.regions
    is_open = range(operand.rank) if within else ()  # along other axes the partitioner may cut
    if name == "full_to_shard":
        y = stated_as("Sharding", x, operand, outside, is_open, around)
        return stated_as("SPMDFullToShardShape", y, result, inside, is_open, within)
    y = stated_as("Sharding", x, operand, inside, is_open, within)
    return stated_as("SPMDShardToFullShape", y, result, outside, is_open, around)
