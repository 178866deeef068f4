"""Indices as sums of counters with constant factors, and whether two of them can be equal.

    start0 = step1 + 1
    io0[start0 * n0 + step0]       {"step1": 300, "step0": 1, "": 300}, if n0 is 300

Sizes are numbers here, as they are when a kernel is called. A value that does not change is a counter with one value.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...hlo.support.records import dataclass
from .expressions import Binary, Call, Expr, Name, Number

Affine = Mapping[str, int]
"""Factors by name; the constant term has the name ``""``."""


@dataclass(frozen=True, slots=True)
class Range:
    """The values of a counter or of a sum, from `least` to `most`; None: no bound is known."""

    least: int | None
    most: int | None

    @property
    def count(self) -> int | None:
        """How many values there are."""
        return None if self.least is None or self.most is None else max(self.most - self.least + 1, 0)

    def has(self, value: int) -> bool:
        """False if it is known not to be one of the values."""
        return (self.least is None or self.least <= value) and (self.most is None or value <= self.most)

    def both(self, other: Range) -> Range:
        """The values that are in both ranges."""
        a, b, c, d = self.least, other.least, self.most, other.most
        least = b if a is None else a if b is None else max(a, b)
        return Range(least, d if c is None else c if d is None else min(c, d))


LIMITS = {f"{u}int{bits}": Range(0 if u else -(1 << bits - 1), (1 << bits - (not u)) - 1)
          for u in ("", "u") for bits in (8, 16, 32, 64)}  # fmt: skip
"""The values of types."""


@dataclass(slots=True)
class Indices:
    """What is known of names while statements are read in order."""

    sizes: Mapping[str, int]
    """The numbers that arguments stand for."""
    ranges: Mapping[str, Range]
    """The counters of loops."""
    known: dict[str, Affine | None]
    """The values of names that are assigned; None: not as a sum."""

    def of(self, e: Expr) -> Affine | None:
        """The expression as a sum; None if it is none, or if it may leave its type's range."""
        match e:
            case Number(value=value):
                return {"": int(value)} if e.type == "int64" else None
            case Name(name=name):
                if name in self.sizes:
                    return {"": self.sizes[name]}
                return self.known.get(name, {name: 1})
            case Binary(op="+" | "-" | "*" as op, left=left, right=right) if e.type == "int64":
                return _combined(op, self.of(left), self.of(right))
            case Call(function="add" | "subtract" as op, arguments=(left, right)):
                return self._in_range(_combined("+" if op == "add" else "-", self.of(left), self.of(right)), e.type)
            case Call(function=function, arguments=(value,)) if function in LIMITS:
                inner = self.of(value)
                return inner if value.type == function else self._in_range(inner, function)
        return self._constant(e)

    def _constant(self, e: Expr) -> Affine | None:
        """An expression of names that do not change is a value of its own."""
        if e.loads or any(name in self.known or name in self.ranges for name in e.names):
            return None
        return {e.text: 1}

    def _in_range(self, value: Affine | None, type_: str) -> Affine | None:
        if value is None or type_ not in LIMITS:
            return None
        known = self.bounds(value)
        fits = None not in (known.least, known.most) and known.both(LIMITS[type_]) == known
        return value if fits else None

    def bounds(self, value: Affine) -> Range:
        """The least and the largest value of a sum."""
        least: int | None = value.get("", 0)
        most = least
        for name, factor in value.items():
            if not name or not factor:
                continue
            known = self.ranges.get(name, Range(None, None))
            low, high = (known.least, known.most) if factor > 0 else (known.most, known.least)
            least = None if least is None or low is None else least + factor * low
            most = None if most is None or high is None else most + factor * high
        return Range(least, most)


def difference(a: Affine, b: Affine) -> Affine:
    """a - b."""
    return {name: a.get(name, 0) - b.get(name, 0) for name in {**a, **b}}


def _combined(op: str, a: Affine | None, b: Affine | None) -> Affine | None:
    if a is None or b is None:
        return None
    if op == "*":
        a, b = (a, b) if set(b) <= {""} else (b, a)
        if not set(b) <= {""}:
            return None
        return {name: factor * b.get("", 0) for name, factor in a.items()}
    if op == "-":
        return difference(a, b)
    return {name: a.get(name, 0) + b.get(name, 0) for name in {**a, **b}}


def constant_difference(a: Affine, b: Affine, but: str = "") -> int | None:
    """The constant term of `a - b`, if the sums differ in nothing else than that and the factor of the name `but`."""
    for name in {**a, **b}:
        if name not in ("", but) and a.get(name, 0) != b.get(name, 0):
            return None
    return a.get("", 0) - b.get("", 0)
