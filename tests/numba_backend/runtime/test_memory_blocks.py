"""Blocks of memory: alignment, recycling, views that keep them alive, limits, threads."""

from __future__ import annotations

import ctypes
import gc
import random
import weakref
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from hloom.numba_backend.runtime import memory

from support.runtime_kernels import python

SIZES = [0, 1, 63, 64, 65, 255, 256, 257, 1000, 4096, 32767, 32768, 32769, 65536, 1 << 20, (1 << 20) + 1, 5 << 20]


@pytest.mark.parametrize("nbytes", SIZES)
def test_blocks_are_aligned_and_writable(nbytes: int) -> None:
    blocks = [memory.allocate(nbytes) for _ in range(3)]
    for value, block in enumerate(blocks):
        assert block.address % 64 == 0 and block.nbytes == nbytes
        ctypes.memset(block.address, value, nbytes)
    for value, block in enumerate(blocks):
        assert ctypes.string_at(block.address, nbytes) == bytes([value]) * nbytes


def test_size_classes_waste_little() -> None:
    for nbytes in [*range(40_000), *range(40_000, 10_000_000, 997)]:
        size = memory.size_class(nbytes)
        assert size >= nbytes and size % (64 if nbytes <= 32768 else 4096) == 0
        assert size <= max(64, nbytes * 1.25 + 63) if nbytes <= 32768 else nbytes * 1.25 + 4095


@pytest.mark.parametrize("nbytes", [100, 10_000, 1 << 20])
def test_memory_is_used_again(nbytes: int) -> None:
    block = memory.allocate(nbytes)
    address = block.address
    del block
    assert memory.allocate(nbytes).address == address


@pytest.mark.parametrize("nbytes", [128, 1 << 20])
def test_views_keep_the_block_alive(nbytes: int) -> None:
    block = memory.allocate(nbytes)
    alive = weakref.ref(block)
    view = block.read_only(np.dtype(np.float32), (nbytes // 8, 2))[1:, ::-1].T
    address = block.address
    del block
    gc.collect()
    assert alive() is not None
    other = memory.allocate(nbytes)
    assert other.address != address
    del view
    assert alive() is None
    assert memory.allocate(nbytes).address == address


@pytest.mark.parametrize(
    "dtype", [np.float32, np.complex128, np.int8, bool, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]
)
def test_arrays(dtype: object) -> None:
    block = memory.allocate(1000)
    array = block.read_only(np.dtype(dtype), (3, 5))
    assert array.shape == (3, 5) and array.dtype == np.dtype(dtype) and array.flags.c_contiguous
    assert array.ctypes.data == block.address
    with pytest.raises(ValueError, match=r"(?i)writeable"):
        array.flags.writeable = True
    assert block.read_only(np.dtype(dtype), ()).shape == ()
    with pytest.raises(ValueError, match="within"):
        block.read_only(np.dtype(dtype), (1001,))


@pytest.mark.parametrize("nbytes", [1, 100, 32768, 32769, 1 << 20])
def test_memory_of_a_call(nbytes: int) -> None:
    seen: list[int] = []

    def run(bases: list[int]) -> None:
        kept, address = bases
        assert kept == 7 and address % 64 == 0 and address not in seen
        seen.append(address)
        ctypes.memset(address, len(seen), nbytes)
        if len(seen) < 3:
            borrow([7])  # has other memory
        else:
            raise KeyError
        raise AssertionError

    borrow = memory.with_memory(nbytes, run)
    with pytest.raises(KeyError):
        borrow([7])
    assert {memory.allocate(nbytes).address for _ in range(3)} <= set(seen)
    again: list[int] = []
    memory.with_memory(nbytes, again.extend)([7])
    assert again[0] == 7 and again[1] in seen


def test_limit_on_unused_memory() -> None:
    memory.release_unused()
    assert memory._large.bytes == 0
    try:
        memory.set_pool_limit(3 << 20)
        blocks = [memory.allocate(1 << 20) for _ in range(8)]
        blocks.clear()
        assert memory._large.bytes == 3 << 20
        memory.set_pool_limit(0)
        assert memory._large.bytes == 0
        address = memory.allocate(1 << 20).address
        assert address and memory._large.bytes == 0
    finally:
        memory.set_pool_limit(1 << 30)


@pytest.mark.parametrize("kind", [memory.Memory, memory.LargeMemory])
def test_a_block_without_memory_dies_in_silence(kind: type[memory.Memory]) -> None:
    """An interrupt may come between making the object and giving it its memory."""
    kind.__new__(kind).__del__()


@pytest.mark.parametrize("nbytes", [-1, -64, -100_000])
def test_negative_sizes_are_refused(nbytes: int) -> None:
    with pytest.raises(ValueError, match=str(nbytes)):
        memory.allocate(nbytes)


def test_too_much_is_a_memory_error() -> None:
    with pytest.raises(MemoryError, match="the system has no"):
        memory.allocate(1 << 60)


def test_blocks_of_several_threads_never_overlap() -> None:
    def work(seed: int) -> bool:
        rng = random.Random(seed)
        held: list[tuple[np.ndarray, int]] = []
        for step in range(400):
            nbytes = rng.choice([8, 100, 3000, 20_000, 70_000])
            block = memory.allocate(nbytes)
            ctypes.memset(block.address, (seed * 37 + step) % 251, nbytes)
            array = block.read_only(np.dtype(np.uint8), (nbytes,))
            held.append((array, (seed * 37 + step) % 251))
            if len(held) > 10:
                array, value = held.pop(rng.randrange(len(held)))
                if not (array == value).all():
                    return False
        return all((array == value).all() for array, value in held)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_exit_with_live_blocks() -> None:
    code = """
import numpy as np
from hloom.numba_backend.runtime import memory
blocks = [memory.allocate(size) for size in (10, 100_000)]
arrays = [block.read_only(np.dtype("u1"), (10,)) for block in blocks]
cycle = [arrays]
cycle.append(cycle)
print("ok")
"""
    assert python(code).strip() == "ok"
