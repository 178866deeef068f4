"""jaxopt: gradient descent, BFGS, L-BFGS, projections, root finding, derivatives through a solution."""

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np

A = jnp.array([[3.0, 0.5], [0.5, 2.0]])
b = jnp.array([1.0, -2.0])
solution = np.linalg.solve(np.asarray(A), np.asarray(b))


def quadratic(x, b=b):
    return 0.5 * x @ A @ x - b @ x


for solver in (
    jaxopt.GradientDescent(quadratic, maxiter=200),
    jaxopt.LBFGS(quadratic),
    jaxopt.BFGS(quadratic),
    jaxopt.NonlinearCG(quadratic, maxiter=100),
):
    np.testing.assert_allclose(solver.run(jnp.zeros(2)).params, solution, atol=2e-3)
inside = jaxopt.ProjectedGradient(quadratic, jaxopt.projection.projection_non_negative).run(jnp.zeros(2)).params
np.testing.assert_allclose(inside, [1 / 3, 0], atol=1e-3)
half = jaxopt.Bisection(lambda x: x**3 - 2, 0.0, 2.0).run().params
np.testing.assert_allclose(half, 2 ** (1 / 3), rtol=1e-4)


def solved(b):
    return jaxopt.GradientDescent(quadratic, maxiter=300, implicit_diff=True).run(jnp.zeros(2), b).params


np.testing.assert_allclose(jax.jacobian(solved)(b), np.linalg.inv(np.asarray(A)), atol=5e-3)
residuals = jaxopt.LevenbergMarquardt(lambda x: jnp.array([x[0] - 1, 10 * (x[1] - x[0] ** 2)]))
np.testing.assert_allclose(residuals.run(jnp.array([-1.0, 1.0])).params, [1, 1], atol=1e-2)
