"""blackjax: HMC, NUTS with window adaptation, random walks, SMC, variational inference."""

import blackjax
import jax
import jax.numpy as jnp

key = jax.random.key(0)


def logdensity(x):
    return -0.5 * jnp.sum((x - 1) ** 2 / jnp.array([1.0, 4.0]))


def sampled(kernel, state, count=1500, skip=300):
    @jax.jit
    def run(key, state):
        def step(state, key):
            state, _ = kernel(key, state)
            return state, state.position

        return jax.lax.scan(step, state, jax.random.split(key, count))

    return run(key, state)[1][skip:]


def check(positions):
    assert jnp.all(jnp.abs(positions.mean(0) - 1) < 0.5), positions.mean(0)
    assert jnp.all(jnp.abs(positions.var(0) - jnp.array([1.0, 4.0])) < jnp.array([0.6, 2.4])), positions.var(0)


for algorithm in (
    blackjax.hmc(logdensity, 0.4, jnp.ones(2), 8),
    blackjax.nuts(logdensity, 0.4, jnp.ones(2)),
    blackjax.mala(logdensity, 0.5),
    blackjax.rmh(logdensity, blackjax.mcmc.random_walk.normal(jnp.array([1.5, 3.0]))),
    blackjax.barker_proposal(logdensity, 1.5),
):
    check(sampled(algorithm.step, algorithm.init(jnp.zeros(2))))

warmup = blackjax.window_adaptation(blackjax.nuts, logdensity)
(state, parameters), _ = warmup.run(key, jnp.zeros(2), num_steps=200)
check(sampled(blackjax.nuts(logdensity, **parameters).step, state))
