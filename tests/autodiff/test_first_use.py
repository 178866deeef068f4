"""A transformation that is the first one in its process: it loads what it needs, which programs without it do not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.source_tree import run

BEGIN = """
import hloom, hloom.numpy as jnp
x = jnp.arange(3.0)
def written(x):
    cell = hloom.new_ref(x, kind="no_grad_no_remat")
    cell[...] = 2 * x
    return cell[...]
"""
FIRST = {
    "vmap": "hloom.vmap(lambda x: x * 2)(x)",
    "jvp": "hloom.jvp(lambda x: x * 2, (x,), (x,))[1]",
    "grad": "hloom.grad(lambda x: (x * x).sum())(x)",
    "linearize": "hloom.linearize(lambda x: x * 2, x)[1](x)",
    "jit of a reference": "hloom.jit(written)(x)",
}


@pytest.mark.parametrize("name", FIRST)
def test_each_may_be_the_first_one(name: str, tmp_path: Path) -> None:
    assert run(sys.executable, f"{BEGIN}print({FIRST[name]}.tolist())", tmp_path).strip() == "[0.0, 2.0, 4.0]"
