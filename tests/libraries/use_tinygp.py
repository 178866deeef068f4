"""tinygp: kernels, the likelihood and its gradient, predictions, quasiseparable kernels."""

import jax
import jax.numpy as jnp
import numpy as np
from tinygp import GaussianProcess, kernels

x = jnp.linspace(0, 5, 20)
y = jnp.sin(x)


def likelihood(theta):
    kernel = jnp.exp(theta[0]) * kernels.ExpSquared(jnp.exp(theta[1]))
    return GaussianProcess(kernel, x, diag=1e-2).log_probability(y)


theta = jnp.zeros(2)
covariance = np.exp(-0.5 * (np.asarray(x)[:, None] - np.asarray(x)) ** 2) + 1e-2 * np.eye(20)
sign, determinant = np.linalg.slogdet(covariance)
expected = -0.5 * (np.asarray(y) @ np.linalg.solve(covariance, np.asarray(y)) + determinant + 20 * np.log(2 * np.pi))
np.testing.assert_allclose(jax.jit(likelihood)(theta), expected, rtol=1e-3)
slope = jax.jit(jax.grad(likelihood))(theta)
step = 1e-2
numeric = [(likelihood(theta + step * e) - likelihood(theta - step * e)) / (2 * step) for e in jnp.eye(2)]
np.testing.assert_allclose(slope, np.array(numeric), rtol=2e-2, atol=2e-2)
process = GaussianProcess(kernels.Matern32(1.0), x, diag=1e-4)
np.testing.assert_allclose(process.predict(y, jnp.array([1.3, 2.6])), np.sin([1.3, 2.6]), atol=2e-2)
assert process.sample(jax.random.key(0), (3,)).shape == (3, 20)
quasi = GaussianProcess(kernels.quasisep.Matern32(1.0), x, diag=1e-4)
np.testing.assert_allclose(quasi.log_probability(y), process.log_probability(y), rtol=1e-2)
