"""LAPACK over batches: native calls give what Python's give, on threads, and the BLAS keeps its thread setting."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hloom.hlo.custom_call_targets import library
from hloom.hlo.custom_call_targets.library import Shared, each, each_with_work, from_columns, to_columns
from hloom.hlo.element_type import ElementType
from hloom.hlo.errors import UnsupportedError
from hloom.numba_backend.runtime import blas, lapack
from hloom.numba_backend.runtime.threads import get_num_threads, set_num_threads

LOOPS = {"native": lapack.loop_natively, "python": library.loop_in_python}


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(library, "_loop", LOOPS[request.param])
    return str(request.param)


@pytest.fixture
def one_thread() -> Iterator[None]:
    set_num_threads(1)
    yield
    set_num_threads(None)


def factors(count: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Matrices, and what geqrf leaves of them: a routine with a workspace."""
    a = np.random.default_rng(count).standard_normal((count, n, n))
    columns, tau, info = to_columns(a), np.zeros((count, n)), np.zeros(count, np.int32)
    before = (n, n, columns, n, tau)
    each_with_work("geqrf", ElementType.F64, count, before, [ElementType.F64], [info])
    assert not info.any()
    return a, from_columns(columns, (count,))


@pytest.mark.parametrize(("count", "n"), [(0, 3), (1, 3), (7, 3), (2000, 5), (3, 40), (1, 200)])
def test_each_matrix_of_a_batch(loop: str, count: int, n: int) -> None:
    a, packed = factors(count, n)
    for k in range(0, count, 97):
        r = np.linalg.qr(a[k], mode="r")
        np.testing.assert_allclose(np.triu(packed[k]), r, atol=1e-12 * n)


def test_both_loops_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for function in LOOPS.values():
        monkeypatch.setattr(library, "_loop", function)
        results.append(factors(3000, 4)[1])
    np.testing.assert_array_equal(*results)


def test_pieces_have_workspaces_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call writes to the workspace; the calls of one piece write to the memory of that piece."""
    seen: list[int] = []

    @ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)
    def routine(work: int, item: int, *rest: int) -> None:
        seen.append(work)

    monkeypatch.setattr(lapack, "SHARE_NANOSECONDS", 0.5)
    monkeypatch.setattr(lapack, "get_num_threads", lambda: 2)
    shared, items = Shared(np.zeros(100)), np.zeros((6, 1))
    addresses = np.array([shared.array.ctypes.data, items.ctypes.data, 0, 0, 0], np.int64)
    steps, work = np.array([0, 8, 0, 0, 0]), np.array([800, 0, 0, 0, 0])
    lapack.loop_natively(ctypes.cast(routine, ctypes.c_void_p).value or 0, 6, addresses, steps, work)
    assert len(seen) == 6 and len(set(seen)) == 3 and shared.array.ctypes.data not in seen
    places = sorted(set(seen))
    assert all(b - a >= 800 for a, b in itertools.pairwise(places))


def test_one_thread_does_it_alone(one_thread: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_num_threads() == 1
    a, packed = factors(2000, 4)
    np.testing.assert_allclose(np.triu(packed[1999]), np.linalg.qr(a[1999], mode="r"), atol=1e-12)


def test_threads_of_the_blas_are_as_they_were() -> None:
    get, _ = blas.thread_setting()
    if not get:
        pytest.skip("this BLAS has no setting of threads")
    threads = ctypes.CFUNCTYPE(ctypes.c_int)(get)
    before = threads()
    workers = [threading.Thread(target=factors, args=(500, 6)) for _ in range(4)]
    for worker in workers:
        worker.start()
    factors(1, 300)
    for worker in workers:
        worker.join()
    assert threads() == before


def test_a_routine_that_is_missing() -> None:
    with pytest.raises(UnsupportedError, match="no routine snothing"):
        each("nothing", ElementType.F32, 1, 1)
