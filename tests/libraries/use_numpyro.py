"""NumPyro: a linear model by the no-U-turn sampler, by variational inference, and its predictions."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal


def model(x, y=None):
    a = numpyro.sample("a", dist.Normal(0, 1))
    b = numpyro.sample("b", dist.Normal(0, 1))
    noise = numpyro.sample("noise", dist.HalfNormal(1.0))
    with numpyro.plate("points", x.shape[0]):
        numpyro.sample("y", dist.Normal(a + b * x, noise), obs=y)


x = jnp.linspace(-1, 1, 50)
y = 0.5 + 1.5 * x + 0.1 * jax.random.normal(jax.random.key(0), (50,))

sampler = MCMC(NUTS(model), num_warmup=200, num_samples=200, progress_bar=False)
sampler.run(jax.random.key(1), x, y=y)
samples = sampler.get_samples()
assert abs(samples["a"].mean() - 0.5) < 0.1 and abs(samples["b"].mean() - 1.5) < 0.1
assert 0.05 < samples["noise"].mean() < 0.2 and not sampler.get_extra_fields()["diverging"].any()

predicted = Predictive(model, samples)(jax.random.key(2), x)["y"]
assert predicted.shape == (200, 50) and abs(predicted.mean(0) - y).mean() < 0.2

guide = AutoNormal(model)
inference = SVI(model, guide, numpyro.optim.Adam(0.05), Trace_ELBO())
found = inference.run(jax.random.key(3), 500, x, y=y, progress_bar=False)
assert found.losses[-1] < found.losses[0]
assert abs(guide.median(found.params)["b"] - 1.5) < 0.2
