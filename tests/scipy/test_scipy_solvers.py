"""`hloom.scipy.sparse.linalg`, `hloom.scipy.optimize`, `hloom.experimental.ode`: solutions, derivatives, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import hloom
import hloom.numpy as jnp
import hloom.scipy.optimize as optimize
import hloom.scipy.sparse.linalg as linalg
from hloom.experimental.ode import odeint
from hloom.test_util import check_grads
from support.batch_check import complex_ones_slow

NDArray = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)
A = RNG.standard_normal((12, 12)) + 8 * np.eye(12)
S = A @ A.T
Z = A + 1j * RNG.standard_normal((12, 12))
B = RNG.standard_normal(12)

# ---- linear systems

SYSTEMS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "cg": (S, B, {}),
    "cg complex": (Z @ Z.conj().T, B + 1j, {}),
    "bicgstab": (A, B, {}),
    "bicgstab complex": (Z, B + 1j, {}),
    "gmres": (A, B, {}),
    "gmres complex": (Z, B + 1j, {"restart": 5}),
    "gmres incremental": (A, B, {"solve_method": "incremental"}),
    "gmres incremental complex": (Z, B + 1j, {"solve_method": "incremental", "restart": 7}),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", complex_ones_slow(SYSTEMS))
def test_solutions(name: str) -> None:
    matrix, b, options = SYSTEMS[name]
    solve = getattr(linalg, name.split()[0])
    expected = np.linalg.solve(matrix, b)
    near = np.linalg.inv(matrix + 0.1 * np.diag(np.diag(matrix)))
    with hloom.enable_x64(True):
        for m in (None, lambda x: near @ x):
            x, info = solve(matrix, b, tol=1e-11, M=m, **options)
            np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-8, atol=1e-9)
            assert info is None or int(info) == 0
        x, _ = hloom.jit(lambda b: solve(lambda v: matrix @ v, b, x0=0.9 * expected, tol=1e-11, **options))(b)
        np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", ["cg", *[pytest.param(n, marks=pytest.mark.slow) for n in ("bicgstab", "gmres")]])
def test_pytrees_batches_and_derivatives(name: str) -> None:
    """The derivative agrees with the derivative of the exact solution."""
    solve, matrix = getattr(linalg, name), S if name == "cg" else A

    def with_tree(matrix: Any, b: Any) -> Any:
        split = {"u": b[:5], "v": (b[5:],)}

        def product(x: Any) -> Any:
            y = matrix @ jnp.concatenate([x["u"], *x["v"]])
            return {"u": y[:5], "v": (y[5:],)}

        x, _ = solve(product, split, tol=1e-12)
        return jnp.concatenate([x["u"], *x["v"]])

    with hloom.enable_x64(True):
        found = hloom.vmap(lambda b: with_tree(matrix, b))(np.stack([B, 2 * B]))
        np.testing.assert_allclose(np.asarray(found), np.linalg.solve(matrix, np.stack([B, 2 * B]).T).T, atol=1e-9)

        def loss(solver: Any) -> Any:
            def of(scale: Any, b: Any) -> Any:
                return (solver(matrix * (1 + scale * np.eye(12)), b) ** 2).sum()

            return hloom.grad(of, (0, 1))(0.5, B)

        for ours, direct in zip(loss(with_tree), loss(jnp.linalg.solve), strict=True):
            np.testing.assert_allclose(np.asarray(ours), np.asarray(direct), rtol=1e-6)


def test_steps_are_limited_and_breakdown_ends() -> None:
    with hloom.enable_x64(True):
        errors = [
            np.linalg.norm(A @ np.asarray(linalg.gmres(A, B, tol=0, restart=3, maxiter=k)[0]) - B) for k in (1, 2, 4)
        ]
        assert errors[0] > 2 * errors[1] > 4 * errors[2] > 0
        for method in ("batched", "incremental"):
            x, info = linalg.gmres(np.eye(12), B, tol=1e-10, solve_method=method)
            np.testing.assert_allclose(np.asarray(x), B)
            assert int(info) == 0
        assert np.asarray(linalg.cg(S, 0 * B)[0]).tolist() == [0.0] * 12
    assert linalg.cg(lambda x: 2 * x, 1.0)[0].weak_type


# ---- minima


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def himmelblau(x: Any) -> Any:
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def sines(x: Any) -> Any:
    return x[0] ** 2 * 0.1 + jnp.sin(3 * x[0]) + (x[1] - x[0]) ** 2


LBFGS = "l-bfgs-experimental-do-not-rely-on-this"
MINIMA: dict[str, tuple[Callable[..., Any], NDArray, list[float]]] = {
    "rosenbrock": (rosenbrock, np.zeros(4), [1.0] * 4),
    "himmelblau": (himmelblau, np.zeros(2), [3.0, 2.0]),
    "sines": (sines, np.array([-0.1, 3.0]), [1.5365901, 1.5365901]),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("method", ["BFGS", LBFGS])
@pytest.mark.parametrize("name", MINIMA)
def test_minima(name: str, method: str) -> None:
    function, start, expected = MINIMA[name]
    options = {"ftol": -1.0} if method == LBFGS else {}
    with hloom.enable_x64(True):
        found = hloom.jit(lambda x: optimize.minimize(function, x, method=method, tol=1e-7, options=options))(start)
        assert bool(found.success) and int(found.status) == 0
        np.testing.assert_allclose(np.asarray(found.x), expected, atol=1e-6)
        np.testing.assert_allclose(float(found.fun), float(function(found.x)))
        np.testing.assert_allclose(np.asarray(found.jac), np.asarray(hloom.grad(function)(found.x)))
        assert np.abs(np.asarray(found.jac)).max() < 1e-7
        assert int(found.nit) <= int(found.nfev) == int(found.njev) < 100


@pytest.mark.slow
def test_minimize_steps_as_scipy_does() -> None:
    """About as many steps as SciPy's, which has the same method."""
    theirs = scipy.optimize.minimize(scipy.optimize.rosen, np.zeros(8), jac=scipy.optimize.rosen_der, method="BFGS")
    with hloom.enable_x64(True):
        ours = optimize.minimize(rosenbrock, np.zeros(8), method="BFGS")
        assert int(ours.nit) < 1.3 * theirs.nit and int(ours.nfev) < 1.5 * theirs.nfev
        vectors = hloom.vmap(lambda x: optimize.minimize(himmelblau, x, method="bfgs").x)(np.array([[0, 0], [-3.0, 3]]))
        np.testing.assert_allclose(np.asarray(vectors), [[3, 2], [-2.805118, 3.131312]], atol=1e-5)


def test_a_minimum_that_is_not_reached() -> None:
    few = optimize.minimize(rosenbrock, jnp.zeros(2), method="BFGS", options={"maxiter": 3})
    assert (bool(few.success), int(few.status), int(few.nit)) == (False, 1, 3)
    down = optimize.minimize(lambda x: -x.sum(), jnp.zeros(2), method="BFGS")
    assert (bool(down.success), int(down.status)) == (False, 5) and float(down.fun) < 0
    kink = optimize.minimize(lambda x: abs(x - 0.3).sum(), jnp.ones(2), method="BFGS")
    assert not bool(kink.success) and float(kink.fun) <= 1.4
    assert int(optimize.minimize(rosenbrock, jnp.zeros(2), method=LBFGS, options={"maxfun": 5}).status) == 2


def test_complex_minima_and_arguments() -> None:
    goal = jnp.array([1.0, 2 - 3j, 4, -5j])

    def distance(z: Any, factor: Any) -> Any:
        return factor * (abs(z - goal) ** 2 * jnp.arange(1, 5)).sum()

    found = optimize.minimize(distance, jnp.ones(4, complex), (2.0,), method=LBFGS, options={"gtol": 1e-4})
    np.testing.assert_allclose(np.asarray(found.x), np.asarray(goal), atol=1e-4)
    steep = optimize.minimize(lambda x: ((x * 1e4) ** 2).mean(), jnp.ones(2), method="BFGS")
    np.testing.assert_allclose(np.asarray(steep.x), 0, atol=1e-6)


# ---- differential equations


def pendulum(y: Any, t: Any, friction: Any, strength: Any) -> Any:
    angle, speed = y
    return speed, -friction * speed - strength * jnp.sin(angle) + 0 * t


def decay(y: Any, t: Any, rate: Any) -> Any:
    return -rate * y * (1 + jnp.sin(t))


TIMES = np.linspace(0, 2, 7)


def test_odeint_as_scipy() -> None:
    with hloom.enable_x64(True):
        angle, speed = odeint(pendulum, (3.0, jnp.zeros(())), TIMES, 0.25, 9.8)
        expected = scipy.integrate.solve_ivp(
            lambda t, y: (y[1], -0.25 * y[1] - 9.8 * np.sin(y[0])),
            (0, 2),
            (3.0, 0.0),
            t_eval=TIMES,
            rtol=1e-9,
            atol=1e-9,
        ).y
        np.testing.assert_allclose(np.asarray(angle), expected[0], atol=1e-6)
        np.testing.assert_allclose(np.asarray(speed), expected[1], atol=1e-6)
        batch = hloom.vmap(lambda r: odeint(decay, jnp.ones(2), TIMES, r))(np.array([0.5, 1.0]))
        exact = np.exp(-np.outer([0.5, 1.0], TIMES + 1 - np.cos(TIMES)))
        np.testing.assert_allclose(np.asarray(batch), exact[..., None].repeat(2, -1), atol=1e-7)
        turning = odeint(lambda y, t, w: 1j * w * y, jnp.ones(1, complex), TIMES, jnp.asarray(2.0))
        np.testing.assert_allclose(np.asarray(turning)[:, 0], np.exp(2j * TIMES), atol=1e-7)
    assert odeint(decay, jnp.ones(3), TIMES[:1].astype(np.float32), 1.0).shape == (1, 3)


@pytest.mark.usefixtures("evaluator")
def test_derivatives_of_odeint() -> None:
    with hloom.enable_x64(True):

        def solution(y0: Any, times: Any, friction: Any, offset: Any) -> Any:
            function = lambda y, t, f: (pendulum(y, t, f, 9.8)[0], pendulum(y, t, f, 9.8)[1] + offset * t)  # noqa: E731
            return odeint(function, (y0[0], y0[1]), times, friction, rtol=1e-10, atol=1e-10)

        point = (np.array([2.0, 0.3]), np.linspace(0.1, 1, 4), np.array(0.25), np.array(0.5))
        check_grads(solution, point, order=1, modes=["rev"], atol=1e-5, rtol=1e-5)
        steps = hloom.jit(hloom.grad(lambda k: odeint(lambda y, t, n, k: -y * k * n, 1.0, TIMES, 2, k)[-1]))(0.4)
        np.testing.assert_allclose(float(steps), -4 * np.exp(-1.6), rtol=1e-6)


@pytest.mark.usefixtures("evaluator")
@pytest.mark.slow
def test_second_derivatives_of_odeint() -> None:
    """The adjoint equation is solved by odeint again: y = exp(-k t) has derivatives of any order by k."""
    with hloom.enable_x64(True):
        last = lambda k: odeint(lambda y, t, k: -k * y, 1.0, jnp.array([0.0, 0.5, 1.0]), k)[-1]  # noqa: E731
        assert float(hloom.grad(hloom.grad(last))(0.4)) == pytest.approx(np.exp(-0.4), abs=1e-6)


def test_steps_of_odeint() -> None:
    """hmax finds a short pulse that longer steps do not see; mxstep ends the solution early."""

    def pulse(y: Any, t: Any) -> Any:
        return jnp.where((t > 5) & (t < 5.2), 5.0, 0.0) + 0 * y

    times = jnp.array([0.0, 4.0, 10.0])
    assert float(odeint(pulse, jnp.zeros(()), times, hmax=0.05)[-1]) == pytest.approx(1.0, abs=0.1)
    assert not np.allclose(np.asarray(odeint(decay, jnp.ones(1), times, 1.0, mxstep=2))[-1], np.exp(-11.8), rtol=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("x64", [False, True])
def test_odeint_as_jax(x64: bool) -> None:
    jax = pytest.importorskip("jax")
    from jax.experimental.ode import odeint as theirs

    dtype = np.float64 if x64 else np.float32

    def run(library: Any, solver: Any, np_like: Any) -> Any:
        def equation(y: Any, t: Any, friction: Any, strength: Any) -> Any:
            return y[1], -friction * y[1] - strength * np_like.sin(y[0])

        def total(y0: Any, times: Any, *args: Any) -> Any:
            angle, speed = solver(equation, (y0[0], y0[1]), times, *args, rtol=1e-6, atol=1e-6)
            return (angle**2).sum() + speed.sum()

        point = (np.array([3.0, 0.0], dtype), TIMES.astype(dtype), dtype(0.25), dtype(9.8))
        return library.value_and_grad(total, (0, 1, 2, 3))(*point)

    with hloom.enable_x64(x64), jax.enable_x64(x64):
        expected, found = run(jax, theirs, jax.numpy), run(hloom, odeint, jnp)
    for a, b in zip(hloom.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9 if x64 else 2e-2, atol=1e-9 if x64 else 1e-2)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "square": (lambda: linalg.cg(A[:3], B), ValueError, "must be a square matrix, but has shape"),
    "operator": (lambda: linalg.cg(2, B), TypeError, "either a function or ndarray"),
    "structure": (lambda: linalg.cg(A, B, x0=[B]), ValueError, "matching tree structure"),
    "shapes": (lambda: linalg.cg(A, B, x0=B[:3]), ValueError, "matching shapes"),
    "nothing": (lambda: linalg.cg(lambda x: x, []), ValueError, "b has no arrays"),
    "gmres method": (lambda: linalg.gmres(A, B, solve_method="x"), ValueError, "invalid solve_method x"),
    "method": (lambda: optimize.minimize(rosenbrock, jnp.ones(2), method="x"), ValueError, "Method x not recognized"),
    "args": (lambda: optimize.minimize(rosenbrock, B, 3, method="BFGS"), TypeError, "must be a tuple"),  # type: ignore
    "vector": (lambda: optimize.minimize(rosenbrock, A, method="BFGS"), ValueError, "x0 must be a vector"),
    "complex": (lambda: optimize.minimize(rosenbrock, B * 1j, method="BFGS"), TypeError, "takes real vectors"),
    "option": (lambda: optimize.minimize(rosenbrock, B, method="BFGS", options={"x": 1}), TypeError, "x"),
    "times": (lambda: odeint(decay, 1.0, np.arange(3), 1.0), TypeError, "t must be an array of floats"),
    "a time": (lambda: odeint(decay, 1.0, jnp.ones(()), 1.0), ValueError, "vector with at least one time"),
    "contents": (lambda: odeint(decay, 1.0, TIMES, "x"), TypeError, "must be arrays or scalars"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()
