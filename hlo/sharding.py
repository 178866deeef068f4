"""HloSharding: which part of an array each device holds. Frozen, with XLA's text in both directions.

    {replicated}                                    every device has the whole array
    {maximal device=0}                              only device 0 has it
    {devices=[2,1]0,1}                              two halves along dimension 0, on the devices 0 and 1
    {devices=[2,1,2]<=[4] last_tile_dim_replicate}  two halves, each on two devices: 0, 1 and 2, 3
    {devices=[2,2]<=[2,2]T(1,0)}                    quarters; the order of the devices is that of a transposed iota
    {manual}                                        the array is one device's own: the program inside of a shard_map
    {{replicated}, {devices=[2]0,1}}                of a tuple: one for each leaf

Instructions keep this text in the annotation `sharding`. Source: XLA's hlo_sharding.h and its parser (ParseSharding).
"""

from __future__ import annotations

import builtins
import math
import re
from collections.abc import Sequence
from enum import Enum

from .errors import HloError, UnsupportedError
from .shape import Shape
from .support.records import dataclass
from .text.scanner import pattern

MOST_DEVICES = 1 << 20


class ShardingError(HloError, ValueError):
    """A sharding that is no sharding, or that does not fit its array. The message names the rule and the text."""


class _Kind(Enum):
    REPLICATED = "replicated"
    MAXIMAL = "maximal"
    TILED = "tiled"
    MANUAL = "manual"
    TUPLE = "tuple"


@dataclass(frozen=True, slots=True)
class HloSharding:
    """Where the parts of an array are. Made by the functions below, or by `parse`; equal if they put the same parts on
    the same devices.

    >>> from hloom.hlo import HloSharding
    >>> sharding = HloSharding.from_tiles((2, 1), replicated=2)
    >>> print(sharding)
    {devices=[2,1,2]<=[4] last_tile_dim_replicate}
    >>> sharding.part(3, (6, 5))
    (slice(3, 6, None), slice(0, 5, None))
    """

    kind: _Kind
    tile: builtins.tuple[int, ...] = ()
    """The number of parts along each dimension."""
    devices: builtins.tuple[int, ...] = ()
    """Device numbers, row-major over the tiles and then the subgroups."""
    subgroups: builtins.tuple[builtins.tuple[str, int], ...] = ()
    """The meaning of the further dimensions of `devices`, "replicated" or "manual", and their sizes."""
    elements: builtins.tuple[HloSharding, ...] = ()
    """Of a tuple: one for each leaf."""

    @staticmethod
    def replicate() -> HloSharding:
        """Every device has the whole array.

        >>> from hloom.hlo import HloSharding
        >>> HloSharding.replicate()
        HloSharding('{replicated}')
        """
        return HloSharding(_Kind.REPLICATED)

    @staticmethod
    def maximal(device: int) -> HloSharding:
        """Only one device has the array.

        >>> from hloom.hlo import HloSharding
        >>> HloSharding.maximal(1)
        HloSharding('{maximal device=1}')
        """
        return HloSharding(_Kind.MAXIMAL, devices=(device,))

    @staticmethod
    def manual() -> HloSharding:
        """The array is one device's own.

        >>> from hloom.hlo import HloSharding
        >>> HloSharding.manual()
        HloSharding('{manual}')
        """
        return HloSharding(_Kind.MANUAL)

    @staticmethod
    def tuple(elements: Sequence[HloSharding]) -> HloSharding:
        """The shardings of a tuple's leaves.

        >>> from hloom.hlo import HloSharding
        >>> HloSharding.tuple([HloSharding.replicate(), HloSharding.from_tiles((2,))])
        HloSharding('{{replicated}, {devices=[2]<=[2]}}')
        """
        return HloSharding(_Kind.TUPLE, elements=(*elements,))

    @staticmethod
    def from_tiles(
        tile: Sequence[int], devices: Sequence[int] | None = None, replicated: int = 1, manual: int = 1
    ) -> HloSharding:
        """Parts of an array on devices.

        tile: the number of parts along each dimension. devices: device numbers, row-major over (*tile, manual,
        replicated); None: 0, 1, 2, ... replicated: how many devices hold each part. manual: the number of devices with
        separate arrays, each cut into these parts. ShardingError if the numbers do not fit.

        >>> from hloom.hlo import HloSharding
        >>> HloSharding.from_tiles((1, 2), [0, 2, 1, 3], replicated=2)
        HloSharding('{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}')
        """
        subgroups = (*((kind, n) for kind, n in (("manual", manual), ("replicated", replicated)) if n != 1),)
        count = math.prod(tile) * replicated * manual
        return _tiled((*tile,), (*range(count),) if devices is None else (*devices,), subgroups)

    @staticmethod
    def parse(text: str) -> HloSharding:
        """The sharding of XLA's text. ShardingError if the text is malformed; UnsupportedError for unknown and
        unreduced ones.

        >>> from hloom.hlo import HloSharding
        >>> HloSharding.parse("{devices=[2,2]<=[4]}").devices
        (0, 1, 2, 3)
        """
        return _Reader(text).whole()

    @property
    def is_replicated(self) -> bool:
        return self.kind is _Kind.REPLICATED

    @property
    def is_maximal(self) -> bool:
        return self.kind is _Kind.MAXIMAL

    @property
    def is_manual(self) -> bool:
        return self.kind is _Kind.MANUAL

    @property
    def is_tiled(self) -> bool:
        return self.kind is _Kind.TILED

    @property
    def is_partly_manual(self) -> bool:
        """Whether some devices have separate arrays that are each shared by several devices."""
        return any(kind == "manual" for kind, _ in self.subgroups)

    def manual_part(self) -> HloSharding:
        """Of a partly manual sharding: the devices that share an array, written as the sharding of a vector with an
        element for each."""
        own = self._regrouped()
        count = math.prod(self.tile)
        manual = math.prod(size for kind, size in self.subgroups if kind == "manual")
        each = self.replicated
        order = [own[(t * manual + m) * each + r] for m in range(manual) for t in range(count) for r in range(each)]
        return HloSharding.from_tiles((manual,), order, count * each)

    def tiled_part(self) -> HloSharding:
        """How an array is cut, regardless of the devices: devices with arrays of their own count as holding the same
        part."""
        if not self.is_partly_manual:
            return self
        return HloSharding.from_tiles(self.tile, self._regrouped(), len(self.devices) // math.prod(self.tile))

    def _regrouped(self) -> list[int]:
        """The devices, row-major over the tiles, the manual subgroups and the replicated ones."""
        sizes = [size for _, size in self.subgroups]
        order = sorted(range(len(sizes)), key=lambda k: self.subgroups[k][0])
        places = [0]
        for k in order:
            stride = math.prod(sizes[k + 1 :])
            places = [base + n * stride for base in places for n in range(sizes[k])]
        block = math.prod(sizes)
        return [self.devices[start + p] for start in range(0, len(self.devices), block) for p in places]

    @property
    def is_tuple(self) -> bool:
        return self.kind is _Kind.TUPLE

    @property
    def replicated(self) -> int:
        """How many devices hold each part of a tiled array."""
        return math.prod(size for kind, size in self.subgroups if kind == "replicated")

    @property
    def num_devices(self) -> int | None:
        """How many devices it names, at least; None if it names none."""
        if self.is_tuple:
            return max([e.num_devices or 0 for e in self.elements], default=0) or None
        return max(self.devices) + 1 if self.devices else None

    def shard_shape(self, shape: Shape) -> Shape:
        """The type of a device's part of an array of type `shape`; the type itself if the array is not cut.

        UnsupportedError, with both sizes, if a dimension does not divide: there are no arrays of padded parts here.

        >>> from hloom.hlo import HloSharding, Shape
        >>> print(HloSharding.from_tiles((2, 1)).shard_shape(Shape.parse("f32[6,5]")))
        f32[3,5]
        """
        if not self.is_tiled:
            return shape
        self.require_rank(len(shape.dimensions))
        for d, (size, parts) in enumerate(zip(shape.dimensions, self.tile, strict=True)):
            if size % parts:
                why = f"dimension {d} of {shape} has {size} elements, which {parts} devices cannot share equally"
                what_to_do = "Pad the array, or shard another dimension"
                raise UnsupportedError(f"{self} does not divide {shape}: {why}. {what_to_do}")
        return Shape.array(shape.element, [size // parts for size, parts in zip(shape.dimensions, self.tile)])

    def part(self, device: int, dimensions: Sequence[int]) -> builtins.tuple[slice, ...]:
        """Which part of an array with these dimensions a device holds: a slice for each dimension.

        Sizes that do not divide are cut as XLA pads them: all parts have ceil(size / parts) elements, the last ones
        fewer or none. ShardingError for a device without a part.

        >>> from hloom.hlo import HloSharding
        >>> HloSharding.from_tiles((2,)).part(1, (5,))
        (slice(3, 5, None),)
        """
        if self.is_replicated or (self.is_maximal and self.devices == (device,)):
            return (*(slice(0, size) for size in dimensions),)
        if not self.is_tiled or device not in self.devices:
            raise ShardingError(f"device {device} has no part of an array that is sharded as {self}")
        self.require_rank(len(dimensions))
        number = self.devices.index(device) // math.prod(size for _, size in self.subgroups)
        found: list[slice] = []
        for size, parts in zip(reversed(dimensions), reversed(self.tile)):
            number, index = divmod(number, parts)
            length = -(-size // parts)
            found.append(slice(min(index * length, size), min((index + 1) * length, size)))
        return (*reversed(found),)

    def require_rank(self, rank: int) -> None:
        """ShardingError unless it is for arrays of `rank` dimensions."""
        if self.is_tiled and len(self.tile) != rank:
            raise ShardingError(f"{self} is for arrays with {len(self.tile)} dimensions, and this one has {rank}")

    def to_text(self) -> str:
        """XLA's text. Devices are written as an iota where they are one."""
        match self.kind:
            case _Kind.TUPLE:
                return f"{{{', '.join(e.to_text() for e in self.elements)}}}"
            case _Kind.MAXIMAL:
                return f"{{maximal device={self.devices[0]}}}"
            case _Kind.REPLICATED | _Kind.MANUAL:
                return f"{{{self.kind.value}}}"
        sizes = ",".join(map(str, (*self.tile, *(size for _, size in self.subgroups))))
        kinds = [kind for kind, _ in self.subgroups]
        last = ""
        if kinds == ["replicated"]:
            last = " last_tile_dim_replicate"
        elif kinds:
            last = f" last_tile_dims={{{', '.join(kinds)}}}"
        return f"{{devices=[{sizes}]{_iota_text(self.devices) or ','.join(map(str, self.devices))}{last}}}"

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"HloSharding({self.to_text()!r})"


def unspecified_dims(dimensions: Sequence[int]) -> str:
    """The backend_config of a custom call such as `Sharding` that leaves these dimensions to the partitioner; "" for
    none."""
    return f"unspecified_dims=[{','.join(map(str, dimensions))}]" if dimensions else ""


def _tiled(tile: tuple[int, ...], devices: tuple[int, ...], subgroups: tuple[tuple[str, int], ...]) -> HloSharding:
    """The one form of a tiled sharding: without subgroups of size 1, and devices that hold the same part in order."""
    sizes = (*tile, *(size for _, size in subgroups))
    if any(size < 1 for size in sizes):
        raise ShardingError(f"the tiles {list(sizes)} of a sharding must be positive")
    if math.prod(sizes) != len(devices):
        count = math.prod(sizes)
        raise ShardingError(f"the tiles {list(sizes)} of a sharding need {count} devices, not {len(devices)}")
    if len(set(devices)) != len(devices) or min(devices, default=0) < 0:
        raise ShardingError(f"the devices {list(devices)} of a sharding must be numbers from 0, none twice")
    subgroups = (*((kind, size) for kind, size in subgroups if size != 1),)
    kinds = {kind for kind, _ in subgroups}
    if kinds <= {"replicated"}:
        if math.prod(tile) == 1:
            return HloSharding.replicate()
        copies = math.prod(size for _, size in subgroups)
        if copies > 1:
            subgroups = (("replicated", copies),)
            runs = [sorted(devices[k : k + copies]) for k in range(0, len(devices), copies)]
            devices = (*(device for run in runs for device in run),)
    return HloSharding(_Kind.TILED, tile, devices, subgroups)


def _iota_text(devices: Sequence[int]) -> str:
    """`<=[4]`, `<=[2,2]T(1,0)`: the text of devices that are 0, 1, 2, ... reshaped, transposed and made flat again;
    "" if they are not."""
    factors: list[tuple[int, int]] = []  # (size, stride), the fastest first
    step, count = 1, len(devices)
    if not count or devices[0] != 0:
        return ""
    while step < count:
        stride = devices[step]
        size = 1
        while step * size < count and devices[step * size] == stride * size:
            size += 1
        while count % (step * size):
            size -= 1
        if size == 1:
            return ""
        factors.append((size, stride))
        step *= size
    made = [0]
    for size, stride in factors:
        made = [base + k * stride for k in range(size) for base in made]
    if made != list(devices) or sorted(devices) != list(range(count)):
        return ""
    factors.reverse()
    by_stride = sorted(range(len(factors)), key=lambda k: -factors[k][1])
    source = [factors[k][0] for k in by_stride]
    order = [by_stride.index(k) for k in range(len(factors))]
    if order == list(range(len(order))):
        return f"<=[{count}]"
    return f"<=[{','.join(map(str, source))}]T({','.join(map(str, order))})"


_LIST = r"\[([0-9, ]*)\]"
_DEVICES = rf"devices\s*=\s*{_LIST}\s*(?:<=\s*{_LIST}\s*(?:T\(([0-9, ]*)\))?|([0-9][0-9, ]*))"
_LAST = r"last_tile_dim_replicate|last_tile_dims\s*=\s*\{([a-z, ]*)\}"
_REFUSED = {
    "unknown": "its author left the choice to another partitioner",
    "unreduced": "each device has a term of a sum that is not computed yet",
}


class _Reader:
    """Reads one sharding."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text.strip(), 0

    def fail(self, why: str) -> ShardingError:
        shown = self.text if len(self.text) <= 120 else self.text[:117] + "..."
        return ShardingError(f"the sharding {shown!r} is malformed: {why}")

    def whole(self) -> HloSharding:
        found = self.one()
        if self.position != len(self.text):
            raise self.fail(f"there is more text after character {self.position}")
        return found

    def accept(self, expression: str) -> re.Match[str] | None:
        """The expression, if it is here, with spaces around it."""
        match = pattern(rf"\s*(?:{expression})\s*").match(self.text, self.position)
        if match is not None:
            self.position = match.end()
        return match

    def one(self) -> HloSharding:
        if self.accept(r"\{") is None:
            raise self.fail(f"'{{' is expected at character {self.position}")
        if self.accept(r"\}") is not None:
            return HloSharding.tuple(())
        if self.text.startswith("{", self.position):
            elements = [self.one()]
            while self.accept(",") is not None:
                self.accept(r"/\*.*?\*/")
                elements.append(self.one())
            found = HloSharding.tuple(elements)
        else:
            found = self.simple()
        self.accept(r"metadata\s*=\s*\{(?:[^{}]|\{[^{}]*\})*\}")
        if self.accept(r"\}") is None:
            raise self.fail(f"'}}' is expected at character {self.position}")
        return found

    def simple(self) -> HloSharding:
        if self.accept("replicated") is not None:
            return HloSharding.replicate()
        if self.accept("manual") is not None:
            return HloSharding.manual()
        for word, why in _REFUSED.items():
            if self.accept(rf"{word}\b") is not None:
                raise UnsupportedError(f"the sharding {self.text} cannot be used: {why}. Say how the array is cut")
        device = self.accept(r"maximal\s+device\s*=\s*([0-9]{1,9})")
        if device is not None:
            return HloSharding.maximal(int(device.group(1)))
        match = self.accept(_DEVICES)
        if match is None:
            raise self.fail("one of replicated, manual, maximal device=N, devices=[...] is expected")
        sizes, source, order, listed = [self.numbers(g) for g in match.groups()]
        kinds: list[str] = []
        last = self.accept(_LAST)
        if last is not None:
            kinds = [word.strip() for word in (last.group(1) or "replicated").split(",") if word.strip()]
        if len(kinds) > len(sizes) or not set(kinds) <= {"replicated", "manual"}:
            if "unreduced" in kinds:
                raise UnsupportedError(f"the sharding {self.text} cannot be used: {_REFUSED['unreduced']}")
            raise self.fail(f"the last dimensions {kinds} must be replicated or manual, one for each")
        if math.prod(sizes) > MOST_DEVICES or math.prod(source) > MOST_DEVICES:
            raise self.fail(f"more than {MOST_DEVICES} devices")
        devices = listed if match.group(4) is not None else self.iota(source, order, match.group(3) is not None)
        rank = len(sizes) - len(kinds)
        try:
            return _tiled((*sizes[:rank],), (*devices,), (*zip(kinds, sizes[rank:], strict=True),))
        except ShardingError as error:
            raise self.fail(str(error)) from None

    def numbers(self, text: str | None) -> list[int]:
        found = [word.strip() for word in (text or "").split(",") if word.strip()]
        if any(not word.isdecimal() or len(word) > 9 for word in found):
            raise self.fail(f"{text!r} is no list of numbers")
        return list(map(int, found))

    def iota(self, source: list[int], order: list[int], transposed: bool) -> list[int]:
        if not transposed:
            order = list(range(len(source)))
        if sorted(order) != list(range(len(source))):
            raise self.fail(f"T({','.join(map(str, order))}) is no permutation of {source}")
        devices = [0]
        for d in order:
            stride = math.prod(source[d + 1 :])
            devices = [base + k * stride for base in devices for k in range(source[d])]
        return devices
