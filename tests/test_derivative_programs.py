"""Programs with custom derivatives, checkpoint, solves and grad's options give JAX's numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import hloom
from support.derivative_programs import PATH, PROGRAMS, plain

RECORDED = json.loads(PATH.read_text())


def check(found: Any, expected: Any, where: str) -> None:
    """AssertionError unless two results agree in structure, and in numbers up to rounding in f32."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key, value in expected.items():
            check(found[key], value, f"{where}[{key!r}]")
    elif isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected), where
        for k, (f, e) in enumerate(zip(found, expected, strict=True)):
            check(f, e, f"{where}[{k}]")
    elif isinstance(expected, float | int):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5, err_msg=where)
    else:
        assert found == expected, where


def test_all_are_recorded() -> None:
    assert RECORDED.keys() == PROGRAMS.keys()


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_jax(name: str) -> None:
    with np.errstate(all="ignore"):
        check(plain(PROGRAMS[name](hloom), hloom), RECORDED[name], name)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_record_is_what_jax_gives(name: str) -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("jax.ad_checkpoint")
    pytest.importorskip("jax.custom_derivatives")
    if jax.__version__ != "0.10.2":
        pytest.skip("the record is of JAX 0.10.2")
    check(json.loads(json.dumps(plain(PROGRAMS[name](jax), jax))), RECORDED[name], name)


@pytest.mark.parametrize(
    ("found", "expected"),
    [([1.0, 2.0], [1.0, 2.01]), ([1.0], [1.0, 2.0]), ({"a": 1.0}, {"b": 1.0}), (0.0, "float0[]"), (None, 1.0)],
)
def test_the_check_can_fail(found: Any, expected: Any) -> None:
    with pytest.raises((AssertionError, TypeError)):
        check(found, expected, "here")
