"""optimistix: roots, fixed points, minima and least squares, and derivatives through them."""

import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx


def rosenbrock(y, args):
    return jnp.array([1 - y[0], 10 * (y[1] - y[0] ** 2)])


start = jnp.array([-1.0, 1.5])
for solver in (optx.LevenbergMarquardt(1e-6, 1e-6), optx.GaussNewton(1e-6, 1e-6), optx.Dogleg(1e-6, 1e-6)):
    np.testing.assert_allclose(optx.least_squares(rosenbrock, solver, start).value, [1, 1], atol=1e-3)
for solver in (optx.BFGS(1e-5, 1e-5), optx.NelderMead(1e-6, 1e-6)):
    found = optx.minimise(lambda y, a: jnp.sum(rosenbrock(y, a) ** 2), solver, start, max_steps=1000)
    np.testing.assert_allclose(found.value, [1, 1], atol=1e-2)


def root(a):
    return optx.root_find(lambda y, a: y**3 - a, optx.Newton(1e-6, 1e-6), jnp.array(1.0), args=a).value


np.testing.assert_allclose(jax.jit(root)(8.0), 2, rtol=1e-5)
np.testing.assert_allclose(jax.grad(root)(8.0), 1 / 12, rtol=1e-4)
np.testing.assert_allclose(jax.vmap(root)(jnp.array([1.0, 27.0])), [1, 3], rtol=1e-4)
fixed = optx.fixed_point(lambda y, a: jnp.cos(y), optx.FixedPointIteration(1e-5, 1e-5), jnp.array(0.5)).value
np.testing.assert_allclose(fixed, 0.739085, rtol=1e-4)
bisected = optx.root_find(
    lambda y, a: y**2 - 2, optx.Bisection(1e-5, 1e-5), jnp.array(1.0), options={"lower": 0.0, "upper": 2.0}
)
np.testing.assert_allclose(bisected.value, 2**0.5, rtol=1e-4)
