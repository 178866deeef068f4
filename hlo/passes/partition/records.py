"""The records of partitioning: a record of each collective, and of each instruction that every device computes
whole."""

from __future__ import annotations

from ...notebooks import in_notebooks
from ...support.records import dataclass
from ...support.tables import Table


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """One collective that was put in, or one instruction that is computed whole."""

    instruction: str
    """The name of the instruction of the whole-array program that it serves."""
    opcode: str
    kind: str
    """The opcode of the collective, or "computed whole"."""
    devices: int
    """How many devices are in a group."""
    bytes_sent: int
    """By each device, each time it runs, as a ring sends them."""
    shape: str
    """The device's part, or the whole array."""
    why: str


class PartitionRecords(tuple[PartitionRecord, ...]):
    """The records of a module, in order. They print as a table."""

    __slots__ = ()

    def table(self) -> Table:
        """A row for each record, and one for the sum of the bytes."""
        rows = [
            (f"{r.opcode} {r.instruction}", r.kind, str(r.devices), f"{r.bytes_sent:,}", r.shape, r.why) for r in self
        ]
        rows.append(("all", "", "", f"{sum(r.bytes_sent for r in self):,}", "", ""))
        header = ("for", "what", "devices", "bytes sent", "of", "why")
        return Table(header, rows, frozenset({2, 3}))

    def __str__(self) -> str:
        return self.table().to_text()

    __repr__ = __str__

    _repr_html_ = in_notebooks
