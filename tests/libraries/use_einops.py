"""einops: rearrange, reduce, repeat and einsum, also under jit and grad."""

import einops
import jax
import jax.numpy as jnp
import numpy as np

x = jnp.arange(24.0).reshape(2, 3, 4)
np.testing.assert_array_equal(einops.rearrange(x, "a b c -> c (a b)"), np.asarray(x).reshape(6, 4).T)
np.testing.assert_allclose(einops.reduce(x, "a b c -> b", "mean"), np.asarray(x).mean((0, 2)))
assert einops.repeat(x, "a b c -> a b c d", d=2).shape == (2, 3, 4, 2)
np.testing.assert_allclose(einops.einsum(x, x, "a b c, a b c -> a"), (np.asarray(x) ** 2).sum((1, 2)))
turned = jax.jit(lambda y: einops.rearrange(y, "a b c -> (b c) a"))(x)
np.testing.assert_array_equal(turned, np.asarray(x).reshape(2, 12).T)
gradient = jax.grad(lambda y: einops.reduce(y**2, "a b c -> ", "sum"))(x)
np.testing.assert_allclose(gradient, 2 * np.asarray(x))
