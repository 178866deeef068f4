"""Files of exported functions, between JAX and hloom: JAX's files, recorded, run here; those of hloom run in JAX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import export, lax
from support.export_cases import CASES, export_case

RECORDED = np.load(Path(__file__).resolve().parents[1] / "data" / "jax_exports.npz")


def results(name: str) -> list[np.ndarray[Any, Any]]:
    """JAX's results of a case."""
    count = sum(key.startswith(f"{name}/") for key in RECORDED.files) - 1
    return [RECORDED[f"{name}/{k}"] for k in range(count)]


def same(found: Any, wanted: Any) -> None:
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted, strict=True):
        kind = np.complex128 if np.iscomplexobj(w) else np.float64
        np.testing.assert_allclose(np.asarray(f).astype(kind), w.astype(kind), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_files_of_jax_run_here(name: str) -> None:
    case = CASES[name]
    read = export.deserialize(RECORDED[f"{name}/file"].tobytes())
    assert read.has_vjp() == (case.order > 0) and read.fun_name == "function"
    same(hloom.tree.leaves(read.call(*case.arguments)), results(name))
    written = export.deserialize(read.serialize(vjp_order=case.order))
    same(hloom.tree.leaves(written.call(*case.arguments)), results(name))
    if case.order:

        def total(f: Any) -> Any:
            def summed(*arguments: Any) -> Any:
                leaves = [x for x in hloom.tree.leaves(f(*arguments)) if jnp.issubdtype(x.dtype, jnp.floating)]
                return sum(x.sum() for x in leaves)

            return hloom.grad(summed, argnums=len(case.arguments) - 1)(*case.arguments)

        same([total(read.call)], [np.asarray(total(lambda *xs: case.function(hloom, jnp, lax, *xs)))])


@pytest.mark.parametrize("name", CASES)
def test_functions_exported_here_give_the_results_of_jax(name: str) -> None:
    case = CASES[name]
    made = export_case(case, hloom, jnp, lax, export)
    read = export.deserialize(made.serialize(vjp_order=case.order))
    same(hloom.tree.leaves(read.call(*case.arguments)), results(name))


@pytest.mark.parametrize("name", CASES)
def test_files_of_hloom_run_in_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("flatbuffers", reason="JAX reads files with the package flatbuffers")
    from jax import export as theirs

    case = CASES[name]
    blob = export_case(case, hloom, jnp, lax, export).serialize(vjp_order=case.order)
    read = theirs.deserialize(blob)
    same([np.asarray(x) for x in jax.tree.leaves(read.call(*case.arguments))], results(name))
    assert read.has_vjp() == (case.order > 0)
    if case.order:

        def total(*arguments: Any) -> Any:
            leaves = [x for x in jax.tree.leaves(read.call(*arguments)) if jax.numpy.issubdtype(x.dtype, np.floating)]
            return sum(x.sum() for x in leaves)

        def own(*arguments: Any) -> Any:
            leaves = hloom.tree.leaves(case.function(hloom, jnp, lax, *arguments))
            return sum(x.sum() for x in leaves if jnp.issubdtype(x.dtype, np.floating))

        ours = hloom.grad(own, argnums=len(case.arguments) - 1)(*case.arguments)
        same([np.asarray(jax.grad(total, argnums=len(case.arguments) - 1)(*case.arguments))], [np.asarray(ours)])
