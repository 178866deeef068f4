"""mctx: MuZero's and Gumbel MuZero's tree search find the best action of a small bandit."""

import jax
import jax.numpy as jnp
import mctx

values = jnp.array([[0.1, 0.9, 0.3], [0.8, 0.2, 0.1]])
root = mctx.RootFnOutput(prior_logits=jnp.zeros((2, 3)), value=jnp.zeros(2), embedding=jnp.arange(2))


def step(params, key, action, embedding):
    reward = values[embedding, action]
    out = mctx.RecurrentFnOutput(
        reward=reward, discount=jnp.zeros_like(reward), prior_logits=jnp.zeros((2, 3)), value=jnp.zeros(2)
    )
    return out, embedding


for policy in (mctx.muzero_policy, mctx.gumbel_muzero_policy):
    search = jax.jit(lambda key, policy=policy: policy((), key, root, step, num_simulations=32))
    output = search(jax.random.PRNGKey(0))
    assert (jnp.argmax(output.action_weights, -1) == jnp.array([1, 0])).all(), output.action_weights
