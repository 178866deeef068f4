"""Attention. Names and semantics follow jax.nn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..hlo.sizes import is_symbolic
from ..numpy.promotion import check_arraylike
from ..tracer import dtypes
from ..tracer.arrays.array import as_value, rank_of, shape_of
from ..tracer.compound import compound
from ..tracer.errors import OperandError, UnsupportedError
from .normalization import logsumexp, softmax


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: Literal["xla", "cudnn"] | None = None,
    return_residual: bool = False,
) -> Any:
    """softmax(query key^T * scale + bias) value, for each head: [B, T, N, H], or [T, N, H] without a batch.

    B is the batch, T and S are the lengths of queries and of keys, N and K the numbers of heads (N a multiple of K:
    groups of heads share keys and values), H is the size of a head. The softmax is computed in float32.

    Args:
      query, key, value: [B, T, N, H], [B, S, K, H] and [B, S, K, H], of one dtype.
      bias: added to the scores; broadcasts to [B, N, T, S].
      mask: booleans that broadcast to [B, N, T, S]; where it is false a key does not count.
      scale: by default 1 / sqrt(H).
      is_causal: a query sees no later keys.
      query_seq_lengths, key_value_seq_lengths: int32[B]: how many of the queries and keys are there. The result is zero
        for queries that are not.
      local_window_size: how many keys to the left and to the right of its own place a query sees.
      implementation: None or "xla", which are the same here; "cudnn" raises UnsupportedError.
      return_residual: also return the logarithm of the sum of exponentials, [B, T, N].

    >>> query, key = jnp.zeros((1, 2, 1, 4)), jnp.zeros((1, 3, 1, 4))  # all keys alike: the mean of the values
    >>> value = jnp.array([1.0, 2.0, 6.0]).reshape(1, 3, 1, 1) * jnp.ones(4)
    >>> nn.dot_product_attention(query, key, value)[0, :, 0].round(3)
    Array([[3., 3., 3., 3.],
           [3., 3., 3., 3.]], dtype=float32)
    >>> nn.dot_product_attention(query, key, value, is_causal=True)[0, :, 0, 0].round(3)
    Array([1. , 1.5], dtype=float32)
    """
    if implementation == "cudnn":
        raise UnsupportedError("dot_product_attention: there is no cuDNN on the CPU")
    if implementation not in (None, "xla"):
        raise ValueError(f"Unsupported implementation option: {implementation}")
    window = local_window_size if isinstance(local_window_size, tuple | None) else (local_window_size,) * 2
    given = {
        "query": query, "key": key, "value": value, "bias": bias, "mask": mask,
        "query_seq_lengths": query_seq_lengths, "key_value_seq_lengths": key_value_seq_lengths,
    }  # fmt: skip
    check_arraylike("dot_product_attention", *(v for v in given.values() if v is not None))
    _check(given)
    return _attention(
        query, key, value, bias, mask, query_seq_lengths, key_value_seq_lengths, scale,
        is_causal=bool(is_causal), window=window, return_residual=bool(return_residual),
    )  # fmt: skip


def _check(given: dict[str, Any]) -> None:
    """OperandError (a ValueError) for shapes and dtypes that do not fit."""
    values = {name: as_value(v).aval for name, v in given.items() if v is not None}
    shapes = {n: (1,) * (4 - len(a.shape)) + a.shape if "lengths" not in n else a.shape for n, a in values.items()}
    batch, _, heads, size = shapes["key"] if len(shapes["key"]) == 4 else (0, 0, 0, 0)
    dtype = values["key"].dtype
    wanted: dict[str, tuple[Sequence[int], Any]] = {
        "key": ((-1,) * 4, dtype),
        "value": (shapes["key"], dtype),
        "query": ((batch, -1, -1, size), dtype),
        "mask": ((-1,) * 4, np.dtype(np.bool_)),
        "bias": ((-1,) * 4, None),
        "query_seq_lengths": ((batch,), dtypes.int32),
        "key_value_seq_lengths": ((batch,), dtypes.int32),
    }

    def fail(what: str) -> None:
        raise OperandError(f"dot_product_attention: {what}", "dot_product_attention")

    for name, (sizes, kind) in wanted.items():
        if name not in values:
            continue
        found = shapes[name]
        if len(found) != len(sizes) or any(s not in (-1, f) for s, f in zip(sizes, found, strict=True)):
            fail(f"{name} shape should be {list(sizes)}, but got {values[name].shape}")
        if kind is not None and values[name].dtype != kind:
            fail(f"{name} dtype should be {kind.name}, but got {values[name].dtype.name}")
    if heads == 0 or shapes["query"][2] % heads:
        number = f"{shapes['query'][2]} vs {heads}"
        fail(f"the number of query heads must be a multiple of key/value heads, but got {number}")


@compound(static=("is_causal", "window", "return_residual"))
def _attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any,
    mask: Any,
    query_lengths: Any,
    key_lengths: Any,
    scale: Any,
    *,
    is_causal: bool,
    window: tuple[int, int] | None,
    return_residual: bool,
) -> Any:
    shape = shape_of(query)
    q, k, v = (_with_batch(x) for x in (query, key, value))
    (batch, length, heads, size), (_, keys, groups, _) = q.shape, k.shape
    each = heads // groups
    grouped = q.reshape(batch, length, groups, each, size)
    wide = jnp.promote_types(q.dtype, np.float32)
    scores: Any = jnp.einsum("btkgh,bskh->bkgts", grouped, k, preferred_element_type=wide)
    scores = scores * jnp.asarray(1 / math.sqrt(size) if scale is None else scale, wide)
    if bias is not None:
        scores = (scores + _by_group(_with_batch(bias), groups, each)).astype(wide)
    seen = _seen(length, keys, is_causal, window, query_lengths, key_lengths)
    if mask is not None:
        seen.append(_by_group(_with_batch(mask), groups, each))
    for part in seen:
        scores = jnp.where(part, scores, -0.7 * float(dtypes.finfo(np.float32).max))
    scores = scores.astype(np.float32)
    weights: Any = softmax(scores, -1).astype(k.dtype)
    result: Any = jnp.einsum("bkgts,bskh->btkgh", weights, v)
    if query_lengths is not None:
        is_there = jnp.arange(length)[None, :] < jnp.asarray(query_lengths)[:, None]
        result = result * is_there[:, :, None, None, None].astype(result.dtype)
    result = result.reshape(shape)
    if not return_residual:
        return result
    logarithms = jnp.moveaxis(logsumexp(scores, -1).astype(k.dtype), 3, 1)
    return result, lax.stop_gradient(lax.reshape(logarithms, shape[:-1]))


def _with_batch(x: Any) -> Any:
    """An array of four dimensions."""
    return jnp.reshape(x, (1,) * (4 - rank_of(x)) + shape_of(x))


def _by_group(x: Any, groups: int, each: int) -> Any:
    """[B, N, T, S] or [B, 1, T, S] as [B, K, N / K, T, S], or with 1 in place of both."""
    batch, heads, *rest = x.shape
    return x.reshape(batch, *((1, 1) if heads == 1 else (groups, each)), *rest)


def _seen(
    length: int, keys: int, is_causal: bool, window: tuple[int, int] | None, query_lengths: Any, key_lengths: Any
) -> list[Any]:
    """Which keys a query sees: masks that broadcast to [B, K, N / K, T, S]."""
    count: Any = jnp if is_symbolic(length) or is_symbolic(keys) else np
    of_query, of_key = count.arange(length)[:, None], count.arange(keys)[None, :]
    found: list[Any] = []
    if is_causal:
        found.append(jnp.asarray(of_key <= of_query))
    if window is not None:
        left, right = window
        found.append(jnp.asarray((of_query <= of_key + left) & (of_query >= of_key - right)))
    if query_lengths is not None:
        found.append(jnp.asarray(of_query) < _apart(query_lengths))
    if key_lengths is not None:
        found.append(jnp.asarray(of_key) < _apart(key_lengths))
    return found


def _apart(lengths: Any) -> Any:
    return jnp.reshape(lengths, (-1, 1, 1, 1, 1))
