"""The primitives of `hloom.lax.linalg`: the form of its functions in jaxprs, and the functions that JAX's primitives
bind.

The library's primitives have JAX's names, and parameters in the library's words: `_PARAMS` has JAX's. A primitive is
shown with its meaning (`calls.py`) if JAX has none, or if its rule finds that JAX has no such use.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..tracer.core import Value
from .primitives import primitive

Params = dict[str, Any]


def linalg_params(name: str, params: Params) -> Params | None:
    """JAX's parameters for a use of the library's primitive `name`; None: JAX has no such primitive."""
    rule = _PARAMS.get(name)
    return None if rule is None else rule(params)


def _same(params: Params) -> Params:
    return dict(params)


def _eigh_params(params: Params) -> Params | None:
    if not params["vectors"]:
        return None
    return {"algorithm": None, "lower": params["lower"], "sort_eigenvalues": True, "subset_by_index": None}


def _eig_params(params: Params) -> Params:
    sides = {"compute_left_eigenvectors": params["left"], "compute_right_eigenvectors": params["right"]}
    return {**sides, "enable_eigvec_derivs": params["vectors_move"], "implementation": None}


def _svd_params(params: Params) -> Params:
    algorithm = None if params["routine"] == "gesdd" else _linalg().SvdAlgorithm.QR
    kept = {k: params[k] for k in ("compute_uv", "full_matrices")}
    return {"algorithm": algorithm, **kept, "subset_by_index": None}


_PARAMS: dict[str, Callable[[Params], Params | None]] = {
    "eig": _eig_params,
    "eigh": _eigh_params,
    "hessenberg": _same,
    "householder_product": _same,
    "lu": _same,
    "lu_pivots_to_permutation": _same,
    "ormqr": _same,
    "qr": lambda params: {**params, "use_magma": None},
    "schur": lambda params: {
        "compute_schur_vectors": params["vectors"], "select_callable": None, "sort_eig_vals": False,
    },
    "svd": _svd_params,
    "tridiagonal": _same,
    "tridiagonal_solve": _same,
}  # fmt: skip


def _linalg() -> Any:
    """The library is above this folder."""
    return import_module("..lax.linalg", __package__)


def _define(name: str) -> None:
    """The primitive is the function of this name, which returns one array, or several in the primitive's order."""

    @primitive(name, multiple_results=name in _SEVERAL)
    def apply(*operands: Value, **params: Any) -> Any:
        found = getattr(_linalg(), name)(*operands, **params)
        return list(found) if name in _SEVERAL else found


_SEVERAL = frozenset({"eig", "hessenberg", "lu", "qr", "schur", "tridiagonal"})
for _name in (*_SEVERAL, "cholesky_update", "householder_product", "lu_pivots_to_permutation", "ormqr"):
    _define(_name)
for _name in ("symmetric_product", "tridiagonal_solve"):
    _define(_name)


@primitive("eigh", multiple_results=True)
def _eigh(x: Value, *, lower: bool = True, algorithm: Any = None, **params: Any) -> Any:
    """One triangle is read."""
    return list(
        _linalg().eigh(x, lower=lower, symmetrize_input=False, implementation=algorithm, **params)
    )


@primitive("svd", multiple_results=True)
def _svd(x: Value, *, compute_uv: bool = True, **params: Any) -> list[Any]:
    """The singular values come first."""
    found = _linalg().svd(x, compute_uv=compute_uv, **params)
    return [found[1], found[0], found[2]] if compute_uv else [found]
