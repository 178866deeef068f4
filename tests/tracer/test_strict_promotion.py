"""Strict promotion, of dtypes and of ranks, is about the arrays of users and not about those inside of the library."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import nn, random
from hloom.example_libraries import optimizers
from hloom.experimental import sparse
from hloom.experimental.jet import jet
from hloom.experimental.ode import odeint
from hloom.scipy import linalg, signal, special, stats
from hloom.scipy.cluster.vq import vq
from hloom.scipy.interpolate import RegularGridInterpolator
from hloom.scipy.ndimage import map_coordinates
from hloom.scipy.optimize import minimize
from hloom.scipy.sparse.linalg import bicgstab, gmres
from hloom.scipy.spatial.transform import Rotation
from support.differential.calls import CALLS
from support.differential.kinds import Dtype, RandomSource
from support.differential.libraries import Library, is_array
from support.differential.table import NAMESPACES, Case, Row, draw_case, rows

F, I = np.float32, np.int32  # noqa: E741
X, N, V = np.full((3, 4), 2, F), np.ones((3, 4), I), np.ones(4, F)
Z = X.astype(np.complex64)
ADAM = optimizers.adam(0.1)
KEY = np.array([0, 7], np.uint32)


@hloom.custom_vjp
def _squared(x: Any) -> Any:
    return x * x


_squared.defvjp(lambda x: (_squared(x), x), lambda x, g: (2 * x * g * jnp.ones(4, I),))

ACCEPTED: dict[str, Callable[[], Any]] = {
    "logsumexp": lambda: special.logsumexp(jnp.asarray(Z), return_sign=True),
    "logsumexp with weights": lambda: special.logsumexp(jnp.asarray(X), b=jnp.asarray(X)),
    "multigammaln": lambda: special.multigammaln(jnp.asarray(X) + 5, 3),
    "bessel_jn": lambda: special.bessel_jn(jnp.asarray(V), v=2),
    "vq": lambda: vq(jnp.asarray(X), jnp.asarray(X[:2])),
    "norm.logpdf": lambda: stats.norm.logpdf(jnp.asarray(X)),
    "categorical": lambda: random.categorical(KEY, jnp.asarray(V), shape=(5,)),
    "multivariate_normal": lambda: random.multivariate_normal(KEY, jnp.asarray(V), jnp.eye(4), shape=(5,)),
    "initializer": lambda: nn.initializers.normal(jnp.float32(1), jnp.bfloat16)(KEY, (2, 2)),
    "attention": lambda: nn.dot_product_attention(*[jnp.ones((2, 3, 1, 4))] * 3, is_causal=True, local_window_size=1),
    "minimize": lambda: minimize(lambda x: jnp.sum((x - 1) ** 2), jnp.zeros(3), method="BFGS"),
    "odeint": lambda: odeint(lambda y, t: -y, jnp.float32(1), jnp.array([0.0, 1.0])),
    "jet of complex numbers": lambda: jet(jnp.real, (jnp.asarray(Z),), ([jnp.asarray(Z)],)),
    "BCOO": lambda: _sparse(sparse.BCOO),
    "BCSR": lambda: sparse.BCSR.fromdense(jnp.asarray(X), nse=12).todense(),
    "sparsify": lambda: sparse.sparsify(lambda m: (m @ jnp.ones(4)).sum())(sparse.BCOO.fromdense(X, nse=12)),
    "jet": lambda: jet(jnp.exp, (jnp.asarray(V),), ((jnp.asarray(V), jnp.zeros(4)),)),
    "gmres": lambda: gmres(lambda v: 2 * v, jnp.asarray(V))[0],
    "bicgstab": lambda: bicgstab(jnp.eye(4), jnp.asarray(V))[0],
    "hilbert": lambda: linalg.hilbert(3),
    "invhilbert": lambda: linalg.invhilbert(3),
    "fiedler": lambda: linalg.fiedler(jnp.asarray(V)),
    "Rotation.mean": lambda: Rotation.from_rotvec(jnp.ones((3, 3))).mean().as_quat(),
    "Rotation.apply": lambda: Rotation.from_rotvec(jnp.ones(3)).apply(jnp.ones((5, 3))),
    "kde": lambda: stats.gaussian_kde(jnp.asarray([0.0, 1.0, 3.0]))(jnp.asarray(V)),
    "interpolator": lambda: RegularGridInterpolator((jnp.arange(3.0), jnp.arange(4.0)), X)(jnp.ones((2, 2))),
    "map_coordinates": lambda: map_coordinates(jnp.asarray(X), [jnp.ones(2), jnp.ones(2)], 1),
    "resize": lambda: hloom.image.resize(jnp.asarray(X), (5, 5), "bilinear"),
    "stft": lambda: signal.stft(jnp.ones(16), nperseg=4)[2],
    "derivatives of solve": lambda: hloom.hessian(lambda v: jnp.linalg.solve(jnp.eye(4) * v[0], v).sum())(V),
    "derivative of a norm": lambda: hloom.grad(jnp.linalg.norm)(jnp.asarray(X)),
    "optimizer": lambda: ADAM.params_fn(ADAM.update_fn(0, jnp.ones(3), ADAM.init_fn(jnp.ones(3)))),
    "map of a ufunc": lambda: hloom.tree.map(jnp.add, [jnp.asarray(X)], [jnp.asarray(X)]),
}


def _sparse(kind: Any) -> Any:
    m = kind.fromdense(jnp.asarray(X), nse=12)
    added = m.todense() + (m * 2.0).todense() + (m + m).todense()
    return added, m @ jnp.ones(4), (m @ m.T).todense(), m.sum(0).todense()


def _vmapped(x: Any, y: Any) -> Any:
    return hloom.vmap(lambda a: a + jnp.asarray(y))(jnp.asarray(x))


REFUSED: dict[str, Callable[[], Any]] = {
    "left_shift": lambda: jnp.left_shift(jnp.ones((2, 3), int), jnp.ones(3, int)),
    "operator": lambda: jnp.asarray(X) + jnp.asarray(N),
    "operator on ranks": lambda: jnp.asarray(X) + jnp.asarray(V),
    "where": lambda: jnp.where(jnp.asarray(X) > 0, jnp.asarray(X), jnp.asarray(N)),
    "hypot": lambda: jnp.hypot(jnp.asarray(X), jnp.asarray(V)),
    "logaddexp": lambda: jnp.logaddexp(jnp.asarray(X), jnp.asarray(N)),
    "logsumexp with weights": lambda: special.logsumexp(jnp.asarray(X), b=jnp.asarray(N)),
    "concatenate": lambda: jnp.concatenate([jnp.asarray(X), jnp.asarray(N)]),
    "xlogy": lambda: special.xlogy(jnp.asarray(X), jnp.asarray(N)),
    "xlogy of ranks": lambda: special.xlogy(jnp.asarray(X), jnp.asarray(V)),
    "norm.logpdf": lambda: stats.norm.logpdf(jnp.asarray(X), jnp.asarray(N)),
    "norm.logpdf of ranks": lambda: stats.norm.logpdf(jnp.asarray(X), jnp.asarray(V)),
    "concatenate of bools": lambda: jnp.concatenate([jnp.asarray(X), jnp.asarray(X > 0)]),
    "numpy array on the left": lambda: np.ones(4, I) * jnp.asarray(X),
    "ufunc in jit": lambda: hloom.jit(jnp.add)(jnp.asarray(X), jnp.asarray(V)),
    "ufunc over a tree": lambda: hloom.tree.map(jnp.multiply, [jnp.asarray(X)], [jnp.asarray(N)]),
    "linspace": lambda: jnp.linspace(jnp.int8(1), jnp.uint8(3), 4),
    "a user's function in vmap": lambda: _vmapped(X, X),
    "a user's function in scan": lambda: hloom.lax.scan(lambda c, x: (c, x + jnp.arange(4)), 0, jnp.asarray(X)),
    "a user's right side": lambda: odeint(lambda y, t: y * jnp.arange(4), jnp.asarray(V), jnp.array([0.0, 1.0])),
    "a user's operator": lambda: gmres(lambda v: v * jnp.array([1, 2, 3, 4]), jnp.asarray(V)),
    "a user's sparse function": lambda: sparse.sparsify(lambda m: m @ jnp.ones(4) + jnp.ones(3, int))(
        sparse.BCOO.fromdense(X, nse=12)
    ),
    "a user's derivative": lambda: hloom.grad(lambda v: (_squared(v) * 1.0).sum())(jnp.asarray(V)),
    "a user's function": lambda: minimize(lambda x: jnp.sum((x - 1) * jnp.arange(3)), jnp.zeros(3), method="BFGS"),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", ["called", "jit"])
@pytest.mark.parametrize("name", ACCEPTED)
def test_what_the_library_does_inside_is_not_checked(name: str, how: str) -> None:
    call = ACCEPTED[name]
    expected = hloom.tree.leaves(call())
    with hloom.numpy_dtype_promotion("strict"), hloom.numpy_rank_promotion("raise"):
        found = hloom.tree.leaves(call() if how == "called" else hloom.jit(call)())
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a).astype(np.complex64), np.asarray(b).astype(np.complex64), rtol=1e-4)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", ["called", "jit"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_users_hand_over_is_checked(name: str, how: str) -> None:
    call = REFUSED[name]
    call()
    with hloom.numpy_dtype_promotion("strict"), hloom.numpy_rank_promotion("raise"):
        for _ in range(2):  # a refused call is not remembered as a program
            with pytest.raises((ValueError, TypeError), match=r"promotion=strict|rank_promotion"):
                call() if how == "called" else hloom.jit(call)()
    call()


FEW_ROWS = ("ops", "scipy.ndimage", "scipy.cluster.vq")
"""Their few cases have integers beside floats."""


def _strictly(library: Library, case: Case) -> Any:
    with hloom.numpy_dtype_promotion("strict"), hloom.numpy_rank_promotion("raise"):
        return library.plain(case)


def _obeys(case: Case) -> bool:
    """All arrays have one dtype and one rank, and Python numbers beside them take that dtype."""
    values = [*case.args, *case.options.values()]
    given = [v for value in values for v in (value if isinstance(value, list) else [value])]
    arrays = [np.asarray(v) for v in given if is_array(v)]
    if len({a.dtype for a in arrays}) > 1 or len({a.ndim for a in arrays if a.ndim}) > 1:
        return False
    if any(isinstance(v, Dtype | bool) for v in case.args):
        return False
    return all(a.dtype.kind not in "biu" for a in arrays) or not any(isinstance(v, float) for v in given)


def _has_booleans(case: Case) -> bool:
    return any(is_array(v) and np.asarray(v).dtype == np.bool_ for v in [*case.args, *case.options.values()])


def _rows_of_library(namespace: str) -> list[Row]:
    """Without those that are a function of the tests, which may promote for themselves."""
    return [row for row in rows((namespace,)) if row.name not in CALLS.get(namespace, {})]


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize(
    "namespace", [pytest.param(n, marks=pytest.mark.slow) if n.startswith("scipy.s") else n for n in NAMESPACES]
)
def test_arguments_that_obey_are_accepted(namespace: str) -> None:
    """Each public function of the table, on arguments of one dtype and rank: the setting changes nothing."""
    library, checked, wrong = Library("hloom"), 0, []
    for row in _rows_of_library(namespace):
        case = draw_case(row, RandomSource(zlib.crc32(str(row).encode())))
        if not _obeys(case) or (namespace.startswith("scipy.stats.") and _has_booleans(case)):
            continue  # distributions have integers for `loc` and `scale`, which meet no booleans
        found = library.run(case, _strictly)
        checked += 1
        if found.error is not None and library.run(case).error is None:
            wrong.append(f"{case}: {found.error}")
    assert not wrong, "\n".join(wrong)
    assert checked or namespace in FEW_ROWS or namespace.startswith("scipy.stats.")
