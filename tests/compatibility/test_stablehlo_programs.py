"""Programs in StableHLO from JAX and from PyTorch run here and give their results.

The texts, inputs and results were recorded (`tests/interop/record_stablehlo.py`, `record_torch.py`); the last test
asks JAX itself for all of its programs.
"""

from __future__ import annotations

import numpy as np
import pytest
from hloom.hlo import evaluate, parse, verify
from hloom.hlo.stablehlo.from_hlo import stablehlo_of
from hloom.hlo.stablehlo.text import read as read_mlir
from hloom.hlo.stablehlo.text import write as write_mlir
from hloom.hlo.stablehlo.to_hlo import hlo_of

import hloom
from interop.archive import read
from interop.comparing import difference
from interop.stablehlo_archive import DATA
from interop.stablehlo_archive import read as read_stablehlo
from support.parts import assert_each, parts

RECORDED = read()
TEXTS = read_stablehlo()


def check(name: str) -> None:
    one = RECORDED[name]
    module = hlo_of(read_mlir(TEXTS[name]))
    verify(module)
    results = evaluate(module, *one.inputs)
    assert difference(name, one.outputs, results) is None
    again = hlo_of(read_mlir(write_mlir(stablehlo_of(module))))
    for result, wanted in zip(evaluate(again, *one.inputs), results, strict=True):
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("names", parts([*TEXTS][::3], 20, str))
def test_programs_of_jax(names: list[str]) -> None:
    assert_each(names, check, str)


@pytest.mark.slow
@pytest.mark.parametrize("names", parts([*TEXTS][1::3] + [*TEXTS][2::3], 20, str))
def test_the_other_programs_of_jax(names: list[str]) -> None:
    assert_each(names, check, str)


@pytest.mark.parametrize("backend", ["evaluator", "numba"])
def test_a_network_of_pytorch(backend: str) -> None:
    module = hlo_of(read_mlir((DATA / "torch_network.mlir").read_text()))
    with np.load(DATA / "torch_network.npz") as file:
        (result,) = hloom.run_hlo(module, file["images"], backend=backend)
        np.testing.assert_allclose(result, file["result"], rtol=1e-5)


OTHERS = {"lax.associative_scan": "its recorded HLO is of another function"}


@pytest.mark.slow
@pytest.mark.parametrize("names", parts([name for name in RECORDED if name not in OTHERS], 20, str))
def test_all_programs_as_jax_lowers_them(names: list[str]) -> None:
    pytest.importorskip("jax")
    assert_each(names, check_lowered, str)


def check_lowered(name: str) -> None:
    from interop.cases import CASES
    from interop.record_stablehlo import lowered

    one = RECORDED[name]
    module = hlo_of(read_mlir(lowered(CASES[one.id])))
    verify(module)
    as_hlo = evaluate(parse(one.text), *one.inputs)
    assert difference(one.id, as_hlo, evaluate(module, *one.inputs)) is None
