"""Complex scalars for the mathematics: pairs of `Float`, with the arithmetic of c64 and c128 in XLA."""

from __future__ import annotations

from ....hlo.support.records import dataclass
from .value import Float


@dataclass(frozen=True, slots=True, eq=False)
class Complex:
    real: Float
    imag: Float

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.real + other.real, self.imag + other.imag)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.real - other.real, self.imag - other.imag)

    def __neg__(self) -> Complex:
        return Complex(-self.real, -self.imag)

    def __mul__(self, other: Complex) -> Complex:
        """The textbook product, as XLA: an infinity times a complex number may have NaN parts."""
        return Complex(
            self.real * other.real - self.imag * other.imag,
            self.real * other.imag + self.imag * other.real,
        )
