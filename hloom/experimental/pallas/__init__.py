"""`hloom.experimental.pallas`: kernels as functions of blocks of arrays, with the names of jax.experimental.pallas."""

from ...namespaces import publish as _publish
from ...namespaces.not_written import not_written as _not_written
from . import ops, triton

_NAMES = """
ANY BlockSpec Buffered CostEstimate Element GridSpec HOST MemoryRef MemorySpace Squeezed core_map debug_check
debug_print ds dslice empty kernel loop multiple_of num_programs pallas_call program_id reciprocal run_scoped run_state
semaphore semaphore_read semaphore_signal semaphore_wait squeezed when with_scoped
"""
__all__ = [*_NAMES.split(), "align_to", "cdiv", "next_power_of_2", "ops", "strides_from_shape", "triton"]

_NEEDS = (
    "it needs a compiler of kernels on references to blocks; hloom compiles functions of arrays, and "
    "hloom.register_custom_call gives a custom call a function of NumPy arrays"
)
globals().update(_not_written(__name__, _NAMES, _NEEDS))


def cdiv(a: int, b: int) -> int:
    """a / b, rounded up.

    >>> from hloom.experimental import pallas
    >>> pallas.cdiv(7, 2)
    4
    """
    return -(-a // b)


def align_to(x: int, a: int) -> int:
    """The smallest multiple of a that is not below x.

    >>> from hloom.experimental import pallas
    >>> pallas.align_to(7, 4)
    8
    """
    return cdiv(x, a) * a


def next_power_of_2(x: int) -> int:
    """The smallest power of two that is not below x. ValueError for a negative x.

    >>> from hloom.experimental import pallas
    >>> pallas.next_power_of_2(5)
    8
    """
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 if x == 0 else 1 << (x - 1).bit_length()


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """For each dimension of a row-major array how many elements apart its neighbours are.

    >>> from hloom.experimental import pallas
    >>> pallas.strides_from_shape((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides) if shape else ()


_publish(__name__)
