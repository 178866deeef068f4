"""jraph: graph networks, convolutions, batches and padding of graphs."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np

graph = jraph.GraphsTuple(
    nodes=jnp.arange(6.0).reshape(3, 2),
    edges=jnp.ones((4, 2)),
    senders=jnp.array([0, 1, 2, 0]),
    receivers=jnp.array([1, 2, 0, 2]),
    n_node=jnp.array([3]),
    n_edge=jnp.array([4]),
    globals=jnp.ones((1, 2)),
)
network = jraph.GraphNetwork(
    update_edge_fn=lambda e, s, r, g: e + s + r + g,
    update_node_fn=lambda n, s, r, g: n + s + r,
    update_global_fn=lambda n, e, g: n + e,
)
out = jax.jit(network)(graph)
np.testing.assert_allclose(out.globals.sum(), network(graph).globals.sum())
assert out.nodes.shape == (3, 2)
convolved = jax.jit(jraph.GraphConvolution(lambda n: n * 2, add_self_edges=True))(graph)
assert convolved.nodes.shape == (3, 2)
attention = jraph.GAT(lambda n: n @ jnp.ones((2, 2)), lambda s, r, e: (s * r).sum(-1, keepdims=True))
assert attention(graph._replace(edges=None)).nodes.shape[0] == 3
both = jraph.batch([graph, graph])
np.testing.assert_array_equal(both.receivers, [1, 2, 0, 2, 4, 5, 3, 5])
padded = jraph.pad_with_graphs(both, 10, 12, 3)
assert jraph.get_node_padding_mask(padded).sum() == 6 and len(jraph.unbatch(both)) == 2
gradient = jax.grad(lambda n: jraph.segment_softmax(n, jnp.array([0, 0, 1]))[0])(jnp.array([1.0, 2.0, 3.0]))
np.testing.assert_allclose(gradient, [0.19661, -0.19661, 0], atol=1e-4)
