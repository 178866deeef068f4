"""The offsets of the elements of a fused computation's arrays that are not row-major.

A `PhysicalLayout` is the physical form of a layout (`hlo/physical_form.py`), reduced to what a loop nest needs: the
digits of an index, major to minor. As a mixed-radix number they are the element's offset. For f32[m,n]{1,0:T(8,128)}::

    i // 8,  j // 128,  i % 8,  j % 128        ->        ((i // 8 * n_tiles + j // 128) * 8 + i % 8) * 128 + j % 128

Digits that are always 0 are left out, and neighbours that make up one larger digit are merged. So many layouts become
simple: all arrays of one dimension with tiles, and matrices of up to 128 columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from ...hlo.physical_form import PhysicalDimension
from ...hlo.shape import Shape
from ...hlo.support.records import dataclass


@dataclass(frozen=True, slots=True)
class Digit:
    """``(source // divisor) % modulus``. The source is a dimension, or a tuple of digits read as a mixed-radix number
    (an empty tuple: the digit is 0, and only its extent matters). The extent of a place's first digit does not
    matter."""

    source: int | tuple[Digit, ...]
    divisor: int
    modulus: int | None
    extent: int
    is_tile: bool
    """The extent is the extent of a tile; it belongs to the layout and not to the array."""

    @property
    def is_zero(self) -> bool:
        return self.source == ()

    def dimensions(self) -> Iterator[int]:
        """The dimensions that the digit depends on."""
        if isinstance(self.source, int):
            yield self.source
        else:
            for digit in self.source:
                yield from digit.dimensions()

    def renumbered(self, number: Callable[[int], int | None]) -> Digit:
        """The digit with the dimensions renumbered; `number` gives None for a dimension with an index that is always
        0."""
        if isinstance(self.source, int):
            found = number(self.source)
            return replace(self, source=() if found is None else found)
        digits = tuple(d.renumbered(number) for d in self.source)
        if all(d.is_zero for d in digits):
            return replace(self, source=())
        return replace(self, source=digits)


@dataclass(frozen=True, slots=True)
class PhysicalLayout:
    """The digits of an element's offset, major to minor; if elements are packed, the bits of one element."""

    digits: tuple[Digit, ...]
    packed_bits: int = 0

    @property
    def is_linear(self) -> bool:
        """True for an array of one dimension with contiguous elements."""
        return len(self.digits) == 1 and self.is_plain(0) == 0

    def is_plain(self, dimension: int) -> int | None:
        """The number of the digit that equals the index of `dimension`, if no other digit depends on that index."""
        found = [k for k, digit in enumerate(self.digits) if dimension in digit.dimensions()]
        if len(found) != 1:
            return None
        digit = self.digits[found[0]]
        return found[0] if (digit.source, digit.divisor, digit.modulus) == (dimension, 1, None) else None

    def may_merge(self, dimension: int, size: int) -> bool:
        """True when `dimension` and the next, of `size` elements, are stored like one dimension."""
        first, second = self.is_plain(dimension), self.is_plain(dimension + 1)
        return first is not None and second == first + 1 and self.digits[second].extent == size

    def merged(self, groups: Sequence[Sequence[int]]) -> PhysicalLayout:
        """The place for the array that merges the dimensions `groups[i]` into dimension i; `may_merge` holds in
        groups."""
        position = {d: i for i, group in enumerate(groups) for d in group}
        digits: list[Digit] = []
        for digit in self.digits:
            before = digits[-1] if digits else None
            if isinstance(digit.source, int) and before is not None and isinstance(before.source, int):
                group = groups[position[digit.source]]
                if digit.source != group[0] and before.source in group:
                    digits[-1] = replace(before, source=digit.source, extent=before.extent * digit.extent)
                    continue
            digits.append(digit)
        return PhysicalLayout(tuple(d.renumbered(lambda n: position[n]) for d in digits), self.packed_bits)

    def splits(self, dimension: int) -> tuple[tuple[int, int | None], ...]:
        """(divisor, modulus) of each digit of a dimension, if together they make up its index; else ()."""
        found: list[tuple[int, int | None]] = []
        for digit in self.digits:
            if digit.source == dimension:
                found.append((digit.divisor, digit.modulus))
            elif dimension in digit.dimensions():
                return ()
        if not found or found[0][1] is not None or found[-1][0] != 1:
            return ()
        for (major, _), (minor, modulus) in pairwise(found):
            if modulus is None or major != minor * modulus:
                return ()
        return tuple(found)


def physical_layout_of(shape: Shape) -> PhysicalLayout | None:
    """The place of an array, for indices without its dimensions of size 1; None for row-major order."""
    layout = shape.array_layout
    bits = shape.bits_per_element if shape.bits_per_element < 8 else 0
    if layout.is_dense and layout.is_monotonic_with_dim0_major:
        return None
    kept = [d for d, size in enumerate(shape.dimensions) if size != 1]
    position = {d: i for i, d in enumerate(kept)}
    sizes = [shape.dimensions[d] for d in kept]
    digits = [_digit(d).renumbered(position.get) for d in shape.physical_form.dimensions]
    simplified = _simplified(digits, sizes)
    if not bits and _is_row_major(simplified, sizes):
        return None
    return PhysicalLayout(tuple(simplified), bits)


def _digit(dimension: PhysicalDimension) -> Digit:
    source = dimension.source
    return Digit(
        source if isinstance(source, int) else tuple(map(_digit, source)),
        dimension.divisor,
        dimension.modulus,
        dimension.extent,
        dimension.modulus is not None,
    )


def _simplified(digits: Sequence[Digit], sizes: Sequence[int]) -> list[Digit]:
    found: list[Digit] = []
    for digit in digits:
        if isinstance(digit.source, int):
            largest = max(sizes[digit.source] - 1, 0) // digit.divisor
            if largest == 0 or digit.modulus == 1:
                digit = replace(digit, source=())
            elif digit.modulus is not None and largest < digit.modulus:
                digit = replace(digit, modulus=None)
        elif digit.modulus == 1:
            digit = replace(digit, source=())
        if digit.is_zero:
            digit = replace(digit, divisor=1, modulus=None)
            if digit.extent == 1 or not found:
                continue
        before = found[-1] if found else None
        if before is not None and _continues(before, digit):
            assert digit.modulus is not None
            modulus = None if before.modulus is None else before.modulus * digit.modulus
            found[-1] = Digit(
                digit.source, digit.divisor, modulus, before.extent * digit.extent, before.is_tile and digit.is_tile
            )
        else:
            found.append(digit)
    return found


def _continues(major: Digit, minor: Digit) -> bool:
    """True when the two are the upper and the lower part of one larger digit."""
    return (
        not major.is_zero
        and major.source == minor.source
        and minor.modulus is not None
        and minor.extent == minor.modulus
        and major.divisor == minor.divisor * minor.modulus
    )


def _is_row_major(digits: Sequence[Digit], sizes: Sequence[int]) -> bool:
    if [d.source for d in digits] != list(range(len(sizes))):
        return False
    if any((d.divisor, d.modulus) != (1, None) for d in digits):
        return False
    return all(d.extent == size for d, size in zip(digits[1:], sizes[1:], strict=True))


PhysicalLayouts = Mapping[int, PhysicalLayout]
"""The layouts, by the number of the parameter or of the output."""
