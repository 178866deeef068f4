"""The collector starts seldom while a program is traced and compiled, and as before afterwards."""

import gc
import sys
import threading
import weakref

import llvmlite.ir as llir
import numpy as np
import pytest
from hloom.hlo.analyses.forms import with_sizes
from hloom.hlo.support.garbage import SELDOM, collecting_seldom
from hloom.numba_backend.runtime.dialect import SCOPE
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter

import hloom
from hloom import hlo


@pytest.fixture(autouse=True)
def thresholds():
    """Known thresholds, and the previous ones afterwards."""
    found = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    yield
    gc.set_threshold(*found)


def test_blocks_in_one_another():
    with collecting_seldom():
        within = gc.get_threshold()
        assert (within[0], within[2]) == (SELDOM, 12)
        with collecting_seldom():
            pass
        assert gc.get_threshold() == within
    assert gc.get_threshold() == (701, 11, 12)


def test_an_error_restores_them():
    with pytest.raises(KeyboardInterrupt), collecting_seldom():
        raise KeyboardInterrupt
    assert gc.get_threshold() == (701, 11, 12)


def test_the_last_thread_restores_them():
    inside, may_end = threading.Event(), threading.Event()

    def work() -> None:
        with collecting_seldom():
            inside.set()
            may_end.wait(60)

    other = threading.Thread(target=work)
    with collecting_seldom():
        other.start()
        assert inside.wait(60)
    assert gc.get_threshold()[0] == SELDOM
    may_end.set()
    other.join()
    assert gc.get_threshold() == (701, 11, 12)


@pytest.mark.parametrize("given", [(0, 5, 5), (SELDOM + 1, 10, 10)])
def test_a_collector_that_starts_later_stays(given):
    gc.set_threshold(*given)
    with collecting_seldom():
        assert gc.get_threshold() == given
    assert gc.get_threshold() == given


def test_what_somebody_sets_meanwhile_stays():
    with collecting_seldom():
        gc.set_threshold(33, 4, 5)
    assert gc.get_threshold() == (33, 4, 5)
    with collecting_seldom():
        assert gc.get_threshold()[0] == SELDOM
    assert gc.get_threshold() == (33, 4, 5)


@pytest.fixture
def generations():
    """The generations that the collector looks through."""
    found: list[int] = []

    def note(phase: str, about: dict[str, int]) -> None:
        if phase == "start":
            found.append(about["generation"])

    gc.collect()
    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="has no middle generation")
@pytest.mark.parametrize("count", [20_000, SELDOM + 20_000])
def test_what_a_long_block_leaves_is_old(count, generations):
    """So the collections after it have little to look through."""
    with collecting_seldom():
        kept = [[] for _ in range(count)]
    gc.collect(0)
    young = {id(each) for generation in (0, 1) for each in gc.get_objects(generation)}
    assert young.isdisjoint(map(id, kept))
    assert generations.count(1) == (1 if count < SELDOM else 2)


@pytest.mark.parametrize("is_short", [False, True])
def test_no_collection_that_is_not_due(is_short, generations):
    """After a short block, or of a collector that is switched off."""
    if not is_short:
        gc.disable()
    try:
        with collecting_seldom():
            kept = [[] for _ in range(50 if is_short else 20_000)]
    finally:
        gc.enable()
    assert kept and 1 not in generations


def test_while_a_function_is_traced():
    seen = []

    def f(x):
        seen.append(gc.get_threshold()[0])
        return x + 1

    assert hloom.jit(f)(np.float32(1)) == 2
    assert seen == [SELDOM]
    assert gc.get_threshold() == (701, 11, 12)


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _nodes():
    return sum(isinstance(each, llir.Instruction) for each in gc.get_objects())


@pytest.mark.usefixtures("no_collector")
def test_the_nodes_of_a_kernel_are_gone_without_the_collector():
    """A kernel has thousands, and they refer to one another."""
    text = "def k(lo, hi, x0, out0):\n    for i in range(lo, hi):\n        out0[i] = exp(x0[i])\n"
    kernel = KernelSource("k", text, (Parameter("pointer", "f32"), Parameter("pointer", "f32")))
    before = _nodes()
    assert "fma" in to_llvm(kernel, SCOPE)
    assert _nodes() == before


class Sizes(list):
    """A list to which weak references are possible."""


@pytest.mark.usefixtures("no_collector")
def test_a_computation_with_other_sizes_leaves_nothing_to_the_collector():
    body = "x = (f32[40], f32[30]) parameter(0) ROOT y = f32[40] get-tuple-element(x), index=0"
    module = hlo.parse(f"ENTRY main {{ {body} }}")
    sizes = Sizes([50, 60, 50])
    gone = weakref.ref(sizes)
    found = with_sizes(module.entry, iter(sizes), {})
    assert [str(i.shape) for i in found.instructions] == ["(f32[50], f32[60])", "f32[50]"]
    del sizes
    assert gone() is None
