"""Random sparse arrays. Names and arguments follow jax.experimental.sparse."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import numpy as jnp
from ... import random
from ...tracer.dtypes import canonical_dtype, default_float
from .arrays import BCOO


def random_bcoo(
    key: Any,
    shape: Sequence[int],
    *,
    dtype: Any = None,
    indices_dtype: Any = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Any] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """A BCOO array with random elements at random places.

    nse: how many elements are specified in each batch; less than 1: which part of the sparse dimensions' size.
    unique_indices: no place occurs twice. sorted_indices: the places are in order.
    generator: generator(key, shape, dtype, **kwds) makes the elements.

    >>> sparse.random_bcoo(hloom.random.key(0), (4, 5), nse=3)
    BCOO(float32[4, 5], nse=3)
    """
    sizes = tuple(int(n) for n in shape)
    end = len(sizes) - n_dense
    if not 0 <= n_batch <= end:
        raise ValueError(f"random_bcoo: {n_batch=} and {n_dense=} of the shape {sizes}")
    batch, sparse, dense = sizes[:n_batch], sizes[n_batch:end], sizes[end:]
    places = math.prod(sparse)
    count = math.ceil(nse * places) if 0 <= nse < 1 else int(nse)
    if count < 0 or (unique_indices and count > places):
        raise ValueError(f"random_bcoo: got {nse=}, expected to be between 0 and {places}")
    for_places, for_data = random.split(key)
    batches = math.prod(batch)
    if unique_indices:
        keys = random.split(for_places, batches)
        chosen = [random.choice(k, places, (count,), replace=False) for k in keys] if count else []
        flat = jnp.stack(chosen) if chosen else jnp.zeros((batches, count), jnp.int32)
    else:
        flat = random.randint(for_places, (batches, count), 0, max(places, 1))
    if sorted_indices:
        flat = jnp.sort(flat, axis=-1)
    columns = jnp.unravel_index(flat, sparse) if sparse else ()
    kind = canonical_dtype(indices_dtype or jnp.int32)
    indices = jnp.stack(columns, -1) if sparse else jnp.zeros((batches, count, 0), kind)
    data = generator(for_data, (*batch, count, *dense), default_float() if dtype is None else dtype, **kwds)
    return BCOO(
        (data, indices.reshape(*batch, count, len(sparse)).astype(kind)),
        shape=sizes,
        indices_sorted=sorted_indices,
        unique_indices=unique_indices,
    )
