"""The result types of all public functions are JAX's, without and with x64 (`support/type_table.py` has the table)."""

from __future__ import annotations

from typing import Any

import pytest

import hloom
from support import type_table
from support.evaluator_fixture import on_the_evaluator  # noqa: F401  # a fixture

TABLE = type_table.load()
COMPLEX = ("complex64", "complex128", "c*")
NOT_COMPLEX = {
    *("lax.reduce_max", "lax.reduce_min", "nn.log_softmax", "nn.softmax"),
    *(f"numpy.{name}" for name in ("amax", "amin", "argmax", "argmin", "max", "min", "nanmax", "nanmin", "ptp")),
}
"""These may refuse complex numbers, which JAX orders."""
MISSING = {
    *(("numpy.iscomplexobj", "[xx] 1"), ("numpy.isrealobj", "[xx] 1"), ("numpy.size", "xi 1")),
    *(("numpy.roll", "xx 1"), ("numpy.roll", "x1.5 1"), ("lax.select_n", "xx 1")),
}
"""Calls that may raise where JAX has a result."""


def differences(found: dict[str, Any], recorded: dict[str, Any], x64: bool) -> list[tuple[str, ...]]:
    """(function, call, dtype, JAX's, ours) for each call that JAX accepts. hloom may accept more."""
    wrong: list[tuple[str, ...]] = []
    for name, rows in recorded.items():
        for call, row in rows.items():
            kinds = type_table.kinds(x64) if name else ("",)
            ours = found[name].get(call, " ".join("-" for _ in kinds))
            for kind, theirs, answer in zip(kinds, row.split(" "), ours.split(" "), strict=True):
                if theirs in ("-", "") or theirs == answer:
                    continue
                refused = answer == "-" and ((name in NOT_COMPLEX and kind in COMPLEX) or (name, call) in MISSING)
                if not refused:
                    wrong.append((name, call, kind, theirs, answer))
    return wrong


@pytest.mark.usefixtures("on_the_evaluator")
@pytest.mark.parametrize("x64", [False, True])
def test_result_types_are_those_of_jax(x64: bool) -> None:
    recorded = TABLE["on" if x64 else "off"]
    assert len(recorded) > 250
    assert differences(type_table.table(hloom, x64), recorded, x64) == []


def test_the_comparison_can_fail() -> None:
    recorded = {"numpy.add": {"x 1": " ".join("f4" for _ in type_table.kinds(False))}}
    found = {"numpy.add": {"x 1": " ".join("f8" for _ in type_table.kinds(False))}}
    assert len(differences(found, recorded, False)) == len(type_table.kinds(False))
    assert differences({"numpy.add": {}}, recorded, False)


@pytest.mark.slow
def test_the_table_is_that_of_the_installed_jax() -> None:
    jax = pytest.importorskip("jax")
    if jax.__version__ != TABLE["jax"]:
        pytest.skip(f"the table is that of JAX {TABLE['jax']}")
    some = sorted(TABLE["on"])[1::12]
    for x64 in (False, True):
        recorded = TABLE["on" if x64 else "off"]
        asked = type_table.table(jax, x64, some)
        assert asked == {name: recorded[name] for name in asked}
