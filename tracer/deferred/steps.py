"""Steps: the record so far, as a node of a tree of all sequences of operations that were recorded before.

A thread that records the same operations on the same types again walks along the same nodes: one look-up an operation,
and no more is computed for it. The node keeps everything that the sequence alone determines: the user's line, whether
to stop here, and, where a batch once ended, the programs that were made of it. Values from outside are nodes too, and
only their type counts; so another learning rate is the same program.

**Where a batch ends.** A loop that reads no value would record without end. So a batch ends where the user's program
comes to a place, with all the calls around it, where it was before: the next iteration begins. Then one iteration (or a
few, if it is short) is one program, made once. Without such a place it ends after `MAX_OPERATIONS`, or when it keeps
much memory of others alive. All this depends on the sequence alone, so it is the same each time.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from ...hlo.ir import NO_ATTRIBUTES, Metadata
from ...hlo.opcode import Opcode
from ...hlo.shape import Shape
from ..aval import ShapedArray
from ..caches import on_clear
from ..source import is_users

LONG_ENOUGH = 16
"""Operations from which a batch ends where the user's program repeats itself."""
MAX_OPERATIONS = 256
"""Operations after which a batch ends in any case."""
MAX_BYTES = 1 << 28
"""Bytes of arrays from outside that a batch may keep alive, or four times the largest of them."""
MAX_STEPS = 100_000
"""Nodes that are kept, over all sequences. Then all are forgotten, and programs are found by their structure."""
MANY_CONSTANTS = 8
"""Constants (or constant slices) of different values in one position, from which they are values from outside."""
_MAX_FRAMES = 24
Site = tuple[Any, ...]


class Step:
    """A node: the sequence that leads to it; the node is its last operation or value."""

    __slots__ = (
        *("attributes", "aval", "bytes", "children", "constants", "ends_before", "fresh", "header", "largest"),
        *("metadata", "number", "opcode", "operands", "operations", "parent", "plans", "runs", "shape"),
        *("site", "slices"),
    )  # fmt: skip

    number: int
    bytes: int
    """Of the values from outside."""
    largest: int
    operations: int

    def __init__(
        self,
        parent: Step | None,
        opcode: Opcode,
        operands: tuple[int, ...],
        attributes: Any,
        shape: Shape,
        aval: ShapedArray | None,
        metadata: Metadata | None,
        site: Site,
    ) -> None:
        self.parent = parent
        self.opcode = opcode
        """PARAMETER for a value from outside, CONSTANT for one that is a part of the program."""
        self.operands = operands
        """Numbers of values."""
        self.attributes = attributes
        self.shape = shape
        self.aval = aval
        self.metadata = metadata
        self.site = site
        self.number = 0 if parent is None else parent.number + 1
        """Of the value: the root has number 0, and is no value."""
        self.children: dict[Any, Step] = {}
        self.plans: dict[tuple[int, ...], Any] = {}
        """For a batch that ended here: its plan, by the numbers of its results."""
        self.runs: dict[tuple[int, ...], int] = {}
        """How often that was asked for, until there is a plan."""
        self.constants = self.slices = 0
        """Of the next values, how many are constants, and slices of constant bounds."""
        is_value = opcode is Opcode.PARAMETER
        own = aval.size * aval.dtype.itemsize if is_value and aval is not None else 0
        before = parent if parent is not None else _NOTHING
        self.bytes = before.bytes + own
        self.largest = max(before.largest, own)
        self.operations = before.operations + (not is_value and opcode is not Opcode.CONSTANT)
        self.fresh: bool = before.fresh or (attributes is not NO_ATTRIBUTES and bool(attributes.called_computations()))
        """Whether an operation runs a computation. Its computation may be traced again each time, and so lead to
        another node."""
        self.header: Site = before.header
        """The first place of the batch that the program has come back to: where a loop begins."""
        self.ends_before = False
        """Whether the batch ends before this operation."""
        if parent is not None and not is_value:
            self.header, is_there = self._repeated(parent)
            kept = max(MAX_BYTES, 4 * parent.largest)
            too_much = parent.operations >= MAX_OPERATIONS or parent.bytes > kept
            self.ends_before = too_much or (is_there and parent.operations >= LONG_ENOUGH)

    def _repeated(self, parent: Step) -> tuple[Site, bool]:
        """The first place of the batch that the program has come back to, and whether it does so now."""
        step: Step | None = parent
        while step is not None and not step.site:
            step = step.parent
        if step is None or not self.site or step.site == self.site:  # the same call of a library function
            return parent.header, False
        if parent.header:
            return parent.header, parent.header == self.site
        while step is not None:
            if step.site == self.site:
                return self.site, True
            step = step.parent
        return (), False


class _Nothing:
    """Before the root."""

    bytes = largest = operations = 0
    fresh = False
    header: Site = ()


_NOTHING: Any = _Nothing


def site_of_user() -> Site:
    """Where the user's program is, and from where that was called, innermost first; empty if nowhere."""
    found: list[Any] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(found) < _MAX_FRAMES:
        if is_users(frame):
            found += (id(frame.f_code), frame.f_lasti)
        frame = frame.f_back
    return tuple(found)


_ROOTS: dict[Any, Step] = {}
_made = 0


def forget() -> None:
    """Forget all sequences, and the programs that only their nodes keep."""
    global _made
    _made = 0
    _ROOTS.clear()


on_clear(forget)


def root_of(place: Any) -> Step:
    """The empty sequence of operations for `place`: the settings on which their programs depend."""
    found = _ROOTS.get(place)
    if found is None:
        found = _ROOTS.setdefault(place, Step(None, Opcode.TUPLE, (), NO_ATTRIBUTES, Shape.tuple([]), None, None, ()))
    return found


def next_step(
    parent: Step,
    key: Any,
    opcode: Opcode,
    operands: tuple[int, ...],
    attributes: Any,
    shape: Shape,
    aval: ShapedArray | None,
    metadata: Metadata | None = None,
    site: Site = (),
) -> Step:
    """The node after `parent` for `key`, which is new."""
    global _made
    if _made >= MAX_STEPS:
        forget()
    _made += 1
    if opcode is Opcode.CONSTANT:
        parent.constants += 1
    elif opcode is Opcode.SLICE:
        parent.slices += 1
    return parent.children.setdefault(
        key, Step(parent, opcode, operands, attributes, shape, aval, metadata, site)
    )
