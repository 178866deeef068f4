"""`hloom.scipy.special` against SciPy: values in float64 and in narrower types, edges, derivatives, dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import hloom
from hloom import numpy as jnp
from hloom.scipy import special
from support.evaluator_fixture import x64  # noqa: F401  # a fixture

INF, NAN = np.inf, np.nan
Draw = Callable[[np.random.Generator, int], np.ndarray]


def _between(low: float, high: float) -> Draw:
    return lambda rng, n: rng.uniform(low, high, n)


def _powers(low: float, high: float) -> Draw:
    return lambda rng, n: 10 ** rng.uniform(low, high, n)


def _whole(low: int, high: int) -> Draw:
    return lambda rng, n: rng.integers(low, high, n).astype(float)


def _plane(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(-5, 5, n) + 1j * rng.uniform(-5, 5, n)


_UNIT, _LINE, _RAY = _between(0, 1), _between(-6, 6), _powers(-6, 2)
# name: (draws of the arguments, relative error in float64, positions with a derivative)
VALUES: dict[str, tuple[list[Draw], float, tuple[int, ...]]] = {
    "gammaln": ([_RAY], 1e-12, (0,)),
    "digamma": ([_RAY], 1e-12, (0,)),
    "gammasgn": ([_LINE], 0, ()),
    "gamma": ([_between(-10, 30)], 1e-13, (0,)),
    "loggamma": ([_RAY], 1e-12, (0,)),
    "gammainc": ([_RAY, _RAY], 1e-11, (0, 1)),
    "gammaincc": ([_between(0.1, 20), _between(0.1, 20)], 1e-11, (0, 1)),
    "betainc": ([_between(0.1, 20), _between(0.1, 20), _UNIT], 1e-11, (0, 1, 2)),
    "beta": ([_powers(-3, 2), _powers(-3, 2)], 1e-12, (0, 1)),
    "betaln": ([_powers(-3, 3), _powers(-3, 3)], 1e-11, (0, 1)),
    "factorial": ([_between(0, 20)], 1e-13, (0,)),
    "comb": ([_between(10, 40), _between(0, 10)], 1e-12, (0, 1)),
    "poch": ([_between(0.1, 20), _between(-3, 20)], 1e-12, (0, 1)),
    "zeta": ([_between(1.1, 20), _powers(-1, 2)], 1e-13, (0, 1)),
    "erf": ([_LINE], 1e-15, (0,)),
    "erfc": ([_LINE], 1e-14, (0,)),
    "erfinv": ([_between(-1, 1)], 1e-13, (0,)),
    "erfcx": ([_between(-20, 50)], 1e-13, (0,)),
    "dawsn": ([_between(-15, 15)], 1e-13, (0,)),
    "wofz": ([_plane], 1e-12, ()),
    "ndtr": ([_between(-30, 6)], 1e-13, (0,)),
    "log_ndtr": ([_between(-50, 8)], 1e-13, (0,)),
    "ndtri": ([_UNIT], 1e-13, (0,)),
    "owens_t": ([_LINE, _between(-4, 4)], 1e-12, (0, 1)),
    "expit": ([_LINE], 1e-14, (0,)),
    "logit": ([_UNIT], 1e-12, (0,)),
    "xlogy": ([_LINE, _RAY], 1e-14, (0, 1)),
    "xlog1py": ([_LINE, _RAY], 1e-14, (0, 1)),
    "entr": ([_RAY], 1e-14, (0,)),
    "rel_entr": ([_RAY, _RAY], 1e-12, (0, 1)),
    "kl_div": ([_RAY, _RAY], 1e-9, (0, 1)),
    "boxcox": ([_RAY, _between(-2, 2)], 1e-12, (0, 1)),
    "boxcox1p": ([_RAY, _between(-2, 2)], 1e-12, (0, 1)),
    "i0": ([_LINE], 1e-13, (0,)),
    "i0e": ([_LINE], 1e-13, (0,)),
    "i1": ([_LINE], 1e-13, (0,)),
    "i1e": ([_LINE], 1e-13, (0,)),
    "exp1": ([_powers(-3, 2)], 1e-13, (0,)),
    "expi": ([_between(-30, 100)], 1e-13, (0,)),
    "expn": ([_whole(0, 40), _powers(-3, 2)], 1e-13, (1,)),
    "spence": ([_powers(-6, 6)], 1e-13, (0,)),
    "hyp1f1": ([_between(-4, 4), _between(0.5, 6), _between(-80, 80)], 1e-9, (0, 1, 2)),
    "hyp2f1": ([_between(0.2, 3), _between(-3, 3), _between(0.5, 6), _between(-5, 0.999)], 1e-10, (0, 1, 2, 3)),
}
_HAS_EDGES = ("gamma", "loggamma", "betaln", "beta", "factorial", "comb", "poch", "zeta", "erfcx", "dawsn", "ndtri",
              "log_ndtr", "owens_t", "logit", "xlogy", "xlog1py", "entr", "rel_entr", "kl_div", "boxcox", "boxcox1p",
              "expi", "exp1", "expn", "spence", "hyp1f1", "hyp2f1")  # fmt: skip
"""The fast tests check the values of these in `test_edges` alone."""
_BRIEF = ("betaln", "expn", "log_ndtr", "logit", "owens_t", "xlogy")
"""The fast tests check derivatives and narrow results of these."""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in _HAS_EDGES)) for n in VALUES])
@pytest.mark.usefixtures("x64")
def test_values(name: str) -> None:
    draws, tolerance, _ = VALUES[name]
    rng = np.random.default_rng(3)
    args = [draw(rng, 200) for draw in draws]
    found = np.asarray(getattr(special, name)(*args))
    exact = getattr(scipy.special, name)(*args)
    assert found.dtype == exact.dtype
    errors = np.abs(found - exact) / np.maximum(np.abs(exact), 1e-300)
    worst = int(np.argmax(np.nan_to_num(errors, nan=INF)))
    assert errors[worst] <= tolerance, (errors[worst], [a[worst] for a in args], found[worst], exact[worst])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in _BRIEF)) for n in VALUES])
def test_values_in_float32(name: str) -> None:
    draws, _, _ = VALUES[name]
    rng = np.random.default_rng(4)
    args = [np.asarray(d, np.complex64 if np.iscomplexobj(d) else np.float32) for d in (f(rng, 50) for f in draws)]
    found = np.asarray(getattr(special, name)(*args))
    wide = [a.astype(np.complex128 if a.dtype.kind == "c" else np.float64) for a in args]
    exact = getattr(scipy.special, name)(*wide)
    assert found.dtype == (np.complex64 if name == "wofz" else np.float32)
    usual = np.abs(exact) < 1e38
    scale = 1.0 if name in ("rel_entr", "kl_div", "boxcox", "boxcox1p", "log_ndtr") else 0.0
    errors = np.abs(found - exact) / np.maximum(np.abs(exact), max(scale, 1e-37))
    limit = 1e-4 if name in ("boxcox", "boxcox1p", "kl_div", "rel_entr", "xlogy", "xlog1py") else 2e-6
    assert np.max(errors[usual]) < limit, args[0][usual][np.argmax(errors[usual])]


EDGES: dict[str, list[tuple[Any, ...]]] = {
    "gammasgn": [(0.0, 1), (-0.0, -1), (-1, NAN), (-0.5, -1), (-1.5, 1), (INF, 1), (-INF, NAN), (NAN, NAN)],
    "gamma": [(0.0, INF), (-0.0, -INF), (-1, NAN), (-0.5, -3.5449077018110318), (171, 7.257415615308e306), (172, INF),
              (INF, INF), (-INF, NAN), (-180.5, 0)],
    "loggamma": [(-0.5, NAN), (INF, INF), (3, 0.6931471805599453)],
    "betaln": [(-0.5, 2, 1.3862943611198906), (0, 1, INF), (INF, 1, -INF), (486499.9360720039, 0.01798699436156552,
               3.7724482033760502), (1e300, 1e300, -1.3862943611198906e300)],
    "beta": [(-0.5, 2, -4), (0, 1, INF), (300, 400, 4.72011611e-209)],
    "factorial": [(-1, 0), (-0.5, 0), (0, 1), (5, 120), (170, 7.257415615308e306), (171, INF), (INF, INF)],
    "comb": [(5, 2, 10), (5, -1, 0), (5, 6, 0), (50, 25, 126410606437752), (0, 0, 1)],
    "poch": [(0, 0, 1), (0, 1, 0), (3, 4, 360), (-0.5, 1, -0.5), (-3, 2, 6), (-3, 5, 0),
             (100, 100, 4.225275093462347e216)],
    "zeta": [(-1, -0.08333333333333333), (-2, 0), (0, -0.5), (0.5, -1.4603545088095868), (1, INF), (2, 1.6449340668),
             (60, 1), (INF, 1), (-INF, NAN), (NAN, NAN), (-3.5, 0.004441011)],
    "erfcx": [(-INF, INF), (INF, 0), (-27, INF), (1e300, 5.6418958e-301)],
    "dawsn": [(INF, 0), (-INF, 0), (1e-300, 1e-300), (-0.0, 0)],
    "fresnel": [(INF, (0.5, 0.5)), (-INF, (-0.5, -0.5)), (NAN, (NAN, NAN)), (0, (0, 0)), (1, (0.43825915, 0.7798934))],
    "sici": [(INF, (1.5707963, 0)), (-INF, (-1.5707963, NAN)), (0, (0, -INF)), (NAN, (NAN, NAN)),
             (-2, (-1.6054130, 0.4229808))],
    "ndtri": [(0, -INF), (1, INF), (-0.1, NAN), (1.1, NAN), (1e-300, -37.0471), (5e-324, -38.467405617144344)],
    "log_ndtr": [(-INF, -INF), (INF, 0), (30, -4.90671393e-198), (-1e100, -5e199)],
    "owens_t": [(0, 1, 0.125), (1, INF, 0.07932762696572854), (1, -INF, -0.07932762696572854), (INF, 1, 0),
                (0, INF, 0.25),                 (1, 0, 0), (NAN, 1, NAN), (1, NAN, NAN)],
    "logit": [(0, -INF), (1, INF), (-1, NAN), (2, NAN)],
    "xlogy": [(0, 0, 0), (0, -1, 0), (0, NAN, NAN), (1, 0, -INF), (NAN, 1, NAN)],
    "xlog1py": [(0, -1, 0), (0, NAN, NAN), (1, -1, -INF)],
    "entr": [(0, 0), (-1, -INF), (NAN, NAN), (INF, -INF)],
    "rel_entr": [(0, 0, 0), (0, 1, 0), (1, 0, INF), (-1, 1, INF), (NAN, 1, NAN)],
    "kl_div": [(0, 0, 0), (0, 1, 1), (1, 0, INF), (-1, 1, INF)],
    "boxcox": [(0, 0, -INF), (0, 1, -1), (2, 0, 0.6931471805599453), (-1, 1, NAN)],
    "boxcox1p": [(0, 0, 0), (-1, 1, -1), (1e-300, 0, 1e-300)],
    "expi": [(0, -INF), (INF, INF), (-INF, 0), (0.37250741078136663, 0)],
    "exp1": [(0, INF), (INF, 0), (-1, NAN)],
    "expn": [(0, 0, INF), (1, 0, INF), (2, 0, 1), (3, 0, 0.5), (-1, 1, NAN), (1, -1, NAN), (2, INF, 0), (5000, 2,
             2.70616421539e-5), (1, NAN, NAN)],
    "spence": [(0, 1.6449340668), (1, 0), (-1, NAN), (INF, -INF)],
    "hyp1f1": [(0, 0, 3, 1), (2, 0, 1, INF), (2, 2, 1, 2.718281828), (-2, 0.5, 3, 1), (1, 2, 700, 1.44890293533572e301),
               (1, 2, -1000, 1e-3), (NAN, 1, 1, NAN)],
    "hyp2f1": [(1, 1, 2, 0.5, 1.3862943611198906), (1, 1, 2, 1, INF), (1, 1, 3, 1, 2), (1, 1, 2, 2, INF),
               (0, 1, 2, 5, 1),
               (-2, 1, 1, 3, 4), (1, 2, -1, 0.5, INF), (1, 1, 2, -1e6, 1.3815511557963774e-05), (1, 2, 3, -INF, NAN),
               (2, 3, 4, 0.9999, 29953.7228760492), (0.5, 0.5, 1.5, 0.99999999, 1.57069633464821)],
}  # fmt: skip


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", EDGES)
@pytest.mark.usefixtures("x64")
def test_edges(name: str) -> None:
    rows = EDGES[name]
    *operands, expected = (np.asarray(column, float) for column in zip(*rows))
    found = np.asarray(getattr(special, name)(*operands))
    exact = expected.T
    absolute = 1e-15 if name in ("expi", "gamma") else 0
    np.testing.assert_allclose(found, exact, rtol=2e-7, atol=absolute)


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in _BRIEF)) for n in VALUES])
@pytest.mark.usefixtures("x64")
def test_derivatives(name: str) -> None:
    """By differences of SciPy's values."""
    draws, _, positions = VALUES[name]
    rng = np.random.default_rng(5)
    args = [draw(rng, 6) for draw in draws]
    if not positions:
        return
    function, reference = getattr(special, name), getattr(scipy.special, name)
    found = hloom.grad(lambda *a: function(*a).sum(), positions)(*args)
    for position, slope in zip(positions, found):
        step = 1e-5 * np.maximum(np.abs(args[position]), 1e-3)
        values = []
        for k in (-2, -1, 1, 2):
            moved = [a + k * step if i == position else a for i, a in enumerate(args)]
            values.append(reference(*moved))
        exact = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
        noise = np.maximum.reduce(np.abs(values)) / step * 1e-12
        np.testing.assert_array_less(np.abs(slope - exact), 1e-6 * np.abs(exact) + noise + 1e-300)


def test_other_functions() -> None:
    z = np.linspace(-30, 30, 13).reshape(1, 13)
    orders = np.arange(6).reshape(-1, 1, 1)
    with hloom.enable_x64(True):
        found = special.bessel_jn(z, v=5)
        np.testing.assert_allclose(found, scipy.special.jv(orders, z), rtol=1e-12, atol=1e-14)
        slopes = hloom.jacfwd(lambda v: special.bessel_jn(v, v=2))(1.5)
        np.testing.assert_allclose(slopes, scipy.special.jvp(orders[:3, 0, 0], 1.5), rtol=1e-13)
        np.testing.assert_allclose(special.multigammaln(np.array([2.5, 40.0]), 3), [
            scipy.special.multigammaln(a, 3) for a in (2.5, 40.0)], rtol=1e-14)  # fmt: skip
        np.testing.assert_allclose(special.bernoulli(40), scipy.special.bernoulli(40), rtol=1e-11)
        x = np.linspace(-9, 9, 41)
        np.testing.assert_allclose(special.fresnel(x), scipy.special.fresnel(x), rtol=1e-13)
        np.testing.assert_allclose(special.sici(x), scipy.special.sici(x), rtol=1e-12)
        assert special.bessel_jn(0.0, v=1).tolist() == [1, 0]
        repeated = special.comb(4.0, 2.0, repetition=True)
        assert repeated == 10


@pytest.mark.usefixtures("x64")
def test_spherical_harmonics() -> None:
    degree, order = (v.ravel() for v in np.meshgrid(np.arange(6), np.arange(-5, 6)))
    degree, order = degree[abs(order) <= degree], order[abs(order) <= degree]
    rng = np.random.default_rng(1)
    theta, phi = rng.uniform(0, np.pi, degree.size), rng.uniform(0, 2 * np.pi, degree.size)
    found = special.sph_harm_y(degree, order, theta, phi)
    np.testing.assert_allclose(found, scipy.special.sph_harm_y(degree, order, theta, phi), rtol=1e-12, atol=1e-14)
    assert special.sph_harm_y(1, 0, 0.3, 0.2).shape == (1,)

    def real_part(angle: Any) -> Any:
        return special.sph_harm_y(3, 2, angle, 0.4, n_max=3)[0].real

    exact = (real_part(0.7 + 1e-6) - real_part(0.7 - 1e-6)) / 2e-6
    np.testing.assert_allclose(hloom.jit(hloom.grad(real_part))(0.7), exact, rtol=1e-8)
    with pytest.raises(hloom.errors.ConcretizationTypeError, match="n_max"):
        hloom.jit(special.sph_harm_y)(degree, order, theta, phi)
    every, z = np.arange(6), np.cos(theta)
    expected = scipy.special.lpmv(every[:, None, None], every[:, None], z)
    np.testing.assert_allclose(special.lpmn_values(5, 5, z, False), expected, rtol=1e-11, atol=1e-12)
    expected = scipy.special.sph_harm_y(every[:, None], every[:, None, None], theta, 0).real
    np.testing.assert_allclose(special.lpmn_values(5, 5, z, True), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_complex_gamma_functions() -> None:
    z = _plane(np.random.default_rng(2), 60)
    z = np.concatenate([z, [3 + 0j, -0.5 + 1e-9j, -2.5 - 1e-9j, 40 + 3j, -20.3 + 30j]])
    with mp.workdps(40):
        exact = np.array([complex(mp.loggamma(mp.mpc(v))) for v in z])
    np.testing.assert_allclose(special.loggamma(z), exact, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(special.gamma(z), scipy.special.gamma(z), rtol=1e-11)
    slope = hloom.grad(special.loggamma, holomorphic=True)(2.0 + 1j)
    np.testing.assert_allclose(slope, scipy.special.digamma(2.0 + 1j), rtol=1e-12)
    assert np.isnan(special.gamma(-2 + 0j))


@pytest.mark.usefixtures("x64")
def test_faddeeva_on_the_axes_and_its_derivative() -> None:
    z = np.array([0, 1e-8, 3, 30, 1j, 1e-5j, 50j, -2j, 1e200, 4 - 1e-3j, 1e200 + 1e190j])
    np.testing.assert_allclose(special.wofz(z), scipy.special.wofz(z), rtol=1e-13)
    slope = hloom.grad(special.wofz, holomorphic=True)(0.5 + 0.25j)
    with mp.workdps(30):
        exact = complex(mp.diff(lambda v: mp.exp(-v * v) * mp.erfc(-1j * v), mp.mpc(0.5, 0.25)))
    np.testing.assert_allclose(slope, exact, rtol=1e-13)
    np.testing.assert_allclose(special.erfcx(1 + 2j), scipy.special.erfcx(1 + 2j), rtol=1e-13)


@pytest.mark.parametrize(("name", "expected"), [
    ("xlogy", "f32* f32* f32 f16 bf16 f32 f32"),
    ("ndtr", "f32 f32 f32 f16 bf16 f32 f32"),
    pytest.param("gamma", "f32 f32 f32 f16 bf16 f32 f32", marks=pytest.mark.slow),
    pytest.param("gammaln", "f32* f32* f32 f16 bf16 f32 f32", marks=pytest.mark.slow),
    pytest.param("wofz", "c64 c64 c64 c64 c64 c64 c64", marks=pytest.mark.slow),
])  # fmt: skip
def test_dtypes(name: str, expected: str) -> None:
    values = (2, 0.5, np.int32(2), np.float16(0.5), jnp.bfloat16(0.5), np.int8(1), True)
    count = {"xlogy": 2}.get(name, 1)
    short = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex64": "c64"}
    found = []
    for v in values:
        result = getattr(special, name)(*[v] * count)
        found.append(short[result.dtype.name] + "*" * result.weak_type)
    assert " ".join(found) == expected


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda: special.entr(1j), ValueError, "does not support complex-valued inputs"),
    (lambda: special.beta(1.0, 1j), TypeError, "does not support complex-valued inputs"),
    (lambda: special.gammaln([1.0]), TypeError, "requires ndarray or scalar arguments"),
    (lambda: special.polygamma(0.5, 1.0), ValueError, "must be of integer type"),
    (lambda: special.log_ndtr(1.0, -1), ValueError, "series_order must be between"),
    (lambda: special.log_ndtr(1.0, 1.5), TypeError, "series_order must be a Python integer"),
    (lambda: special.factorial(3, exact=True), NotImplementedError, "math.factorial"),
    (lambda: special.bernoulli(-1), ValueError, "non-negative"),
    (lambda: special.bessel_jn(1.0, v=-1), ValueError, "at least 0"),
    (lambda: special.sph_harm_y(1, 1, 0.1, 0.1, diff_n=1), NotImplementedError, "diff_n"),
    (lambda: special.lpmn_values(1, 2, jnp.ones(2), True), NotImplementedError, "must be equal"),
    (lambda: special.lpmn_values(1, 1, jnp.ones((2, 2)), True), ValueError, "one dimension"),
    (lambda: special.lpmn_values(1, 1, jnp.arange(2), True), TypeError, "float32 or float64"),
])  # fmt: skip
def test_arguments_in_error(call: Callable[[], Any], kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_softmax_is_over_all_axes_by_default() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(special.softmax(x), scipy.special.softmax(x), rtol=1e-6)
    np.testing.assert_allclose(special.log_softmax(x, axis=0), scipy.special.log_softmax(x, axis=0), rtol=1e-6)
    np.testing.assert_allclose(special.logsumexp(x, 1, b=2.0), scipy.special.logsumexp(x, 1, b=2.0), rtol=1e-6)


@pytest.mark.usefixtures("evaluator")
@pytest.mark.slow
def test_derivatives_where_parameters_make_sums_finite() -> None:
    with hloom.enable_x64(True):
        by_a, by_b, by_c = hloom.grad(special.hyp2f1, (0, 1, 2))(-2.0, 0.75, 0.75, 0.25)
        with mp.workdps(30):
            exact = [
                mp.diff(lambda *p: mp.hyp2f1(*p, 0.25), (-2, mp.mpf(0.75), mp.mpf(0.75)), tuple(order))
                for order in np.eye(3, dtype=int)
            ]
        np.testing.assert_allclose([by_a, by_b, by_c], [float(e) for e in exact], rtol=1e-11)
        by_a = hloom.grad(special.hyp1f1)(1.5, 1.5, 0.5)
        with mp.workdps(30):
            exact = [mp.diff(lambda a: mp.hyp1f1(a, 1.5, 0.5), 1.5)]
        np.testing.assert_allclose(by_a, float(exact[0]), rtol=1e-12)
