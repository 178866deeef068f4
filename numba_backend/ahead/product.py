"""Matrix products without a BLAS, for standalone programs: kernels of `policy/products.py`."""

from __future__ import annotations

from ...hlo.errors import UnsupportedError
from ..loops.statements import SizeParameter
from ..policy.products import without_blas
from ..runtime.blas import Gemm
from ..runtime.kernel import KernelSource, Parameter
from ..runtime.program import Argument, ProgramBuilder, size

_GRAIN_FLOP = 1 << 20


def add_product(builder: ProgramBuilder, gemm: Gemm, a: Argument, b: Argument, c: Argument) -> None:
    """Add the row that computes the product by a kernel, in place of a BLAS. UnsupportedError unless alpha is 1 and
    beta 0 or 1."""
    if gemm.alpha != 1 or gemm.beta not in (0, 1):
        raise UnsupportedError(f"a product with factors {gemm.alpha} and {gemm.beta} is not compiled ahead of time")
    kernel = without_blas(gemm)
    values = [p.value for p in kernel.parameters if isinstance(p, SizeParameter)]
    parameters = (*[Parameter("pointer", gemm.dtype)] * 3, *[Parameter("size", "s64")] * len(values))
    source = KernelSource(kernel.program.name, kernel.source, parameters, program=kernel.program)
    each = max(1, gemm.flop // max(1, kernel.extent))
    builder.kernel(source, (a, b, c, *map(size, values)), kernel.extent, max(1, -(-_GRAIN_FLOP // each)))
