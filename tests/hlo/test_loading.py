"""Python's garbage collector and the objects of the library: `hlo/support/loading.py`."""

from __future__ import annotations

import sys

import pytest

from support.runtime_kernels import python

pytestmark = pytest.mark.skipif("free-threading" in sys.version, reason="without a GIL nothing is frozen")

BEGINS = """
import gc, weakref

class Node:
    def __init__(self):
        self.own = self

{before}
first = Node()
import hloom, hloom.numpy as jnp
print(gc.get_freeze_count() > 20_000, sum(o is vars(hloom.lax) for o in gc.get_objects()))
second = Node()
gone = weakref.ref(first), weakref.ref(second)
hloom.jit(lambda x: x + 1)(jnp.ones(3))  # imports more
third = Node()
gone += (weakref.ref(third),)
del first, second, third
gc.collect()
print([ref() is None for ref in gone])
"""


def test_the_collector_leaves_out_what_a_program_begins_with() -> None:
    assert python(BEGINS.format(before="")).splitlines() == ["True 0", "[False, True, True]"]
    assert python("import gc, hloom; hloom.jit; print(gc.get_freeze_count() > 20_000)").strip() == "True"


def test_it_visits_all_objects_of_a_process_that_has_run_for_a_while() -> None:
    """They may become garbage, and nothing would find that."""
    printed = python(BEGINS.format(before="kept = [[] for _ in range(200_000)]"))
    assert printed.splitlines() == ["False 1", "[True, True, True]"]


LEAKING = """
import gc
kept = []
import hloom
try:
    with hloom.checking_leaks():
        hloom.jit(lambda x: kept.append(x))(1.0)
except hloom.errors.UnexpectedTracerError as error:
    print("it is still alive as __main__.kept[0]" in str(error), gc.get_freeze_count())
"""


def test_a_leak_into_a_variable_from_before_the_import_is_named() -> None:
    assert python(LEAKING).split() == ["True", "0"]
