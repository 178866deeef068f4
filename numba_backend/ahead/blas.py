"""Compute products with the BLAS that the program is linked with, through its C interface (CBLAS).

    extern void cblas_sgemm(int order, int a, int b, int m, int n, int k, float alpha, const float *, int, ...);
"""

from __future__ import annotations

import re
from typing import Literal

from ...hlo.errors import HloError
from ...hlo.support.records import dataclass
from ..runtime.blas import ROUTINES, Gemm

ROW_MAJOR = 101
TRANSPOSES = {"N": 111, "T": 112, "C": 113}
"""The numbers of CBLAS's enumerations."""

C_TYPES = {"f32": "float", "f64": "double", "c64": "float", "c128": "double"}
"""The type of factors of real products, and of the parts of complex numbers."""

_PATTERN = re.compile(r"[A-Za-z_]\w*\*\w*")


class BlasError(HloError, ValueError):
    """A pattern for the names of BLAS functions that makes none.

    >>> from hloom import aot
    >>> aot.compile("model.hlo", blas="sgemm")  # doctest: +SKIP
    Traceback (most recent call last):
    hloom.aot.BlasError: blas 'sgemm': the names of CBLAS functions, with * for the routine, such as 'cblas_*' ...
    """


@dataclass(frozen=True, slots=True)
class Blas:
    """The names of functions: `pattern` with a routine in place of ``*``. Those that end in ``64_`` take integers of 64
    bits, as is the custom of OpenBLAS; others of 32."""

    pattern: str = "cblas_*"

    def __post_init__(self) -> None:
        if not _PATTERN.fullmatch(self.pattern):
            raise BlasError(
                f"blas {self.pattern!r}: the names of CBLAS functions, with * for the routine, such as 'cblas_*' or "
                "'scipy_cblas_*64_'"
            )

    def function(self, dtype: str) -> str:
        """The product of matrices of a type."""
        return self.pattern.replace("*", ROUTINES[dtype])

    @property
    def integers(self) -> Literal[32, 64]:
        """The bits of sizes."""
        return 64 if self.pattern.endswith("64_") else 32

    def declaration(self, dtype: str) -> str:
        """The function's declaration in C."""
        size = f"int{self.integers}_t"
        real = C_TYPES[dtype]
        is_complex = dtype.startswith("c")
        factor, pointer = ("const void *", "void *") if is_complex else (f"{real} ", f"{real} *")
        const = "const void *" if is_complex else f"const {real} *"
        return (
            f"void {self.function(dtype)}(int order, int transpose_a, int transpose_b, {size} m, {size} n, {size} k,\n"
            f"    {factor}alpha, {const}a, {size} lda, {const}b, {size} ldb, {factor}beta, {pointer}c, {size} ldc);\n"
        )


def batch_strides(gemm: Gemm, element_bytes: int) -> list[tuple[int, int, int, int]]:
    """Minor to major: how many items, and the bytes from one to the next of A, B and C."""
    return [
        (d.count, d.a_stride * element_bytes, d.b_stride * element_bytes, d.c_stride * element_bytes)
        for d in reversed(gemm.batch)
    ]
