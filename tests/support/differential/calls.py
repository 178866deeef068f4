"""Calls in the table that are no plain function: of functions, of lists of indices, of arguments made of others.

Each takes the library (`jax`, with its submodules) and the drawn arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Call = Callable[..., Any]


def _window(j: Any, m: Any, name: str, window: Any, strides: Any, padding: str) -> Any:
    starts = {"add": 0, "mul": 1, "max": -9, "min": 9}
    start = j.numpy.asarray(starts[name], m.dtype)
    return j.lax.reduce_window(m, start, getattr(j.lax, name), window, strides, padding)


def _scatter(j: Any, x: Any, i: Any, name: str) -> Any:
    at = x.at[i]
    how = {"mul": "multiply", "sub": "subtract"}.get(name, name)
    return getattr(at, how)(j.numpy.asarray(2, x.dtype))


def _conv(j: Any, x: Any, padding: str, strides: tuple[int, ...]) -> Any:
    return j.lax.conv_general_dilated(x, x[:, :, :2], strides, padding)


NUMPY: dict[str, Call] = {
    "kron:same": lambda j, x, y: j.numpy.kron(x, y),
    "tensordot:one": lambda j, x, y: j.numpy.tensordot(x, y, 1),
    "lexsort:pair": lambda j, x, y: j.numpy.lexsort((x, y)),
    "broadcast_shapes:of": lambda j, v: j.numpy.broadcast_shapes(*[x.shape for x in v]),
    "getitem:rows": lambda j, x, i: x[i] if i else x[:0],
}
NUMPY |= {
    "einsum:chain": lambda j, a, b: j.numpy.einsum("ij,jk->ki", a, b),
    "einsum:trace": lambda j, a: j.numpy.einsum("...ii->...", a),
    "einsum:outer": lambda j, a, b: j.numpy.einsum("i,j->ij", a, b),
    "select:signs": lambda j, x, y: j.numpy.select([x > 0, x < -1], [x, y], 7),
    "choose:two": lambda j, m, x: j.numpy.choose(m.astype("int32"), [x, x + x]),
    "piecewise:three": lambda j, x: j.numpy.piecewise(x, [x > 1, x < 0], [lambda t: t * t, lambda t: -t, 5]),
    "vectorize:pair": lambda j, x, y: j.numpy.vectorize(lambda a, b: a * b + 1)(x, y),
    "apply_along_axis:sum": lambda j, x, axis: j.numpy.apply_along_axis(lambda r: r.cumsum() * 2, axis, x),
    "apply_over_axes:sum": lambda j, x, axis: j.numpy.apply_over_axes(j.numpy.sum, x, [axis]),
    "fromfunction:sum": lambda j, n: j.numpy.fromfunction(lambda a, b: a + 2 * b, (n, 3)),
    "ravel_multi_index:pair": lambda j, i: j.numpy.ravel_multi_index((i % 3, (i + 1) % 2), (3, 2)),
    "vecmat:of": lambda j, m, v: j.numpy.vecmat(v, m.swapaxes(-1, -2)),
    "place:two": lambda j, x, m: j.numpy.place(x, m, j.numpy.asarray([1, 2], x.dtype), inplace=False),
    "add.reduce": lambda j, x, axis: j.numpy.add.reduce(x, axis=axis),
    "add.at": lambda j, x, i: j.numpy.add.at(x, i, j.numpy.asarray(3, x.dtype), inplace=False),
    "multiply.outer": lambda j, x, y: j.numpy.multiply.outer(x, y),
    "maximum.accumulate": lambda j, x, axis: j.numpy.maximum.accumulate(x, axis=axis),
    "method:mean": lambda j, x: (x.mean(), x.std(), x.ravel().argmax(), x.clip(0, 1), x.T),
    "operator:mixed": lambda j, x, y: (x - y, x * 2, 2 - x, x / 3, x == y, x < y),
    "at:slice": lambda j, x, v: x.at[1:].multiply(v).at[..., -1].set(0),
    "at:mask": lambda j, x, v: x.at[x > 0].set(v),
    "getitem:reversed": lambda j, x: x[::-2, ..., None],
}
LAX: dict[str, Call] = {
    "slice:middle": lambda j, x: j.lax.slice(x, [n // 3 for n in x.shape], [n - n // 4 for n in x.shape]),
    "dynamic_slice:one": lambda j, x, i: j.lax.dynamic_slice(x, [i] * x.ndim, [min(1, n) for n in x.shape]),
    "dynamic_update_slice:one": lambda j, x, i: j.lax.dynamic_update_slice(x, x[:1], [i] * x.ndim),
    "dynamic_update_slice_in_dim:one": lambda j, x, i: j.lax.dynamic_update_slice_in_dim(x, x[:1], i, 0),
    "broadcast_in_dim:front": lambda j, x: j.lax.broadcast_in_dim(x, (2, *x.shape), range(1, x.ndim + 1)),
    "reduce:sum": lambda j, x: j.lax.reduce(x, j.numpy.asarray(0, x.dtype), j.lax.add, range(x.ndim)),
    "conv:of": lambda j, x, padding: j.lax.conv(x, x[:, :, :2], (1,), padding),
    "conv_transpose:of": lambda j, x, padding: j.lax.conv_transpose(x, x[:, :2].swapaxes(0, 2), (2,), padding),
    "conv_with_general_padding:of": lambda j, x: j.lax.conv_with_general_padding(
        x, x[:, :, :1], (1,), [(1, 2)], (2,), (1,)
    ),
    "conv_general_dilated_patches:of": lambda j, x, padding: j.lax.conv_general_dilated_patches(x, (2,), (1,), padding),
    "scatter_add:rows": lambda j, x, i: x.at[i].add(x[:1].sum(0) + 1, mode="drop"),
    "custom_root:square": lambda j, x: j.lax.custom_root(
        lambda y: y * y - x, x, lambda f, y: j.numpy.sqrt(abs(x)), lambda g, y: y / g(j.numpy.ones_like(y))
    ),
    "clamp:same": lambda j, x, a, b: j.lax.clamp(a, x, b),
    "rev:axis": lambda j, x, axis: j.lax.rev(x, (axis,)),
    "tile:all": lambda j, x, n: j.lax.tile(x, (n,) * x.ndim),
    "split:two": lambda j, x, n: j.lax.split(x, (n, x.shape[0] - n)),
    "select_n:same": lambda j, x, y: j.lax.select_n(x < y, x, y),
    "select:of": lambda j, x, y: j.lax.select(x == y, x, y),
    "dynamic_update_index_in_dim:at": lambda j, x, v, i, axis: j.lax.dynamic_update_index_in_dim(
        x, j.numpy.full(x.shape[1:], v, x.dtype), i, axis
    ),
    "pad:all": lambda j, x, c: j.lax.pad(x, j.numpy.asarray(1, x.dtype), [c] * x.ndim),
    "dot_general:batch": lambda j, x, y: j.lax.dot_general(x, y, (((2,), (2,)), ((0,), (0,)))),
    "conv_general_dilated:line": lambda j, x, padding: _conv(j, x, padding, (1,)),
    "conv_general_dilated:strided": lambda j, x, padding: _conv(j, x, padding, (2,)),
    "reduce_window:plane": _window,
    "fft:last": lambda j, x, kind: j.lax.fft(x, kind, x.shape[-1:]),
    "gather:rows": lambda j, x, i: x[i],
    "gather:filled": lambda j, x, i: x.at[i].get(mode="fill", fill_value=0),
    "scatter:rows": _scatter,
    "scan:sum": lambda j, x: j.lax.scan(
        lambda c, r: (c + r, c * r), j.numpy.zeros_like(x[:1]).sum(0).astype(x.dtype), x
    ),
    "scan:reversed": lambda j, x: j.lax.scan(lambda c, r: (r, c), x[0], x, reverse=True),
    "associative_scan:add": lambda j, x: j.lax.associative_scan(j.numpy.add, x),
    "map:square": lambda j, x: j.lax.map(lambda r: r * r, x),
    "while_loop:double": lambda j, x: j.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + s[1]), (0, x)),
    "fori_loop:add": lambda j, x: j.lax.fori_loop(0, 3, lambda i, s: s + x, x),
    "fori_loop:traced": lambda j, x: j.lax.fori_loop(0, x[0], lambda i, s: s + x, x),
    "cond:all": lambda j, x: j.lax.cond((x == x).all(), lambda y: y + y, lambda y: y, x),
    "switch:three": lambda j, x: j.lax.switch(x.shape[0], [lambda y: y, lambda y: -y, lambda y: y * y], x),
}
RANDOM: dict[str, Call] = {
    "rayleigh:half": lambda j, key: j.random.rayleigh(key, 0.5, (3,)),
    "choice:of": lambda j, key, n, **options: j.random.choice(key, n, **options),
    "uniform:between": lambda j, key, a, b, **options: j.random.uniform(key, minval=a, maxval=b, **options),
    "dirichlet:last": lambda j, key, a: j.random.dirichlet(key, a.reshape(-1)),
}
RANDOM |= {
    "multivariate_normal:of": lambda j, key, a, v: j.random.multivariate_normal(key, v[..., 0], a),
    "multinomial:of": lambda j, key, n: j.random.multinomial(key, n, j.numpy.asarray([0.2, 0.5, 0.3])),
}
SCIPY_LINALG: dict[str, Call] = {
    "cho_solve:of": lambda j, a, b: j.scipy.linalg.cho_solve(j.scipy.linalg.cho_factor(a), b),
    "lu_solve:of": lambda j, a, b, trans: j.scipy.linalg.lu_solve(j.scipy.linalg.lu_factor(a), b, trans),
    "expm_frechet:of": lambda j, a: j.scipy.linalg.expm_frechet(a * 0.2, a),
    "solve_sylvester:of": lambda j, a, b: j.scipy.linalg.solve_sylvester(a, a, a @ a),
    "eigh_tridiagonal:of": lambda j, d: j.scipy.linalg.eigh_tridiagonal(d, d[1:], eigvals_only=True),
    "qr_multiply:of": lambda j, a: j.scipy.linalg.qr_multiply(a, a.swapaxes(-1, -2)),
    "rsf2csf:schur": lambda j, x: j.scipy.linalg.rsf2csf(*j.scipy.linalg.schur(x)),
    "leslie:of": lambda j, f, s: j.scipy.linalg.leslie(f, s[: f.shape[0] - 1]),
    "block_diag": lambda j, m: j.scipy.linalg.block_diag(*m),
}
NDIMAGE: dict[str, Call] = {
    "map_coordinates:of": lambda j, m, order, **options: j.scipy.ndimage.map_coordinates(
        m, [m.real.astype("float32"), -m.real.astype("float32")], order, **options
    ),
}
SPECIAL: dict[str, Call] = {
    "bessel_jn:two": lambda j, x: j.scipy.special.bessel_jn(x, v=2),
}
SIGNAL: dict[str, Call] = {
    "welch:short": lambda j, x: j.scipy.signal.welch(x, nperseg=4),
    "csd:short": lambda j, x, y: j.scipy.signal.csd(x, y, nperseg=4),
    "stft:short": lambda j, x: j.scipy.signal.stft(x, nperseg=4),
}
JAX_LINALG: dict[str, Call] = {
    "cholesky_update:one": lambda j, a, v: j.lax.linalg.cholesky_update(
        j.lax.linalg.cholesky(a).swapaxes(-1, -2), v[..., 0]
    ),
    "symmetric_product:of": lambda j, a, v: j.lax.linalg.symmetric_product(v, a, alpha=2.0, beta=0.5),
    "householder_product:of": lambda j, a: j.lax.linalg.householder_product(a, a[..., 0, :] * 0.1),
}
NUMPY_LINALG: dict[str, Call] = {
    "multi_dot:three": lambda j, a, b: j.numpy.linalg.multi_dot([a, b, a]),
    "tensorinv:of": lambda j, a: j.numpy.linalg.tensorinv(a, a.ndim - 1),
    "tensorsolve:of": lambda j, a, b: j.numpy.linalg.tensorsolve(a, b[..., 0]),
}
NN: dict[str, Call] = {
    "dot_product_attention:of": lambda j, x, **o: j.nn.dot_product_attention(
        x[None, :, :, None], x[None, :, ::-1, None], x[None, :, :, None] * 2, **o
    ),
}
IMAGE: dict[str, Call] = {
    "scale_and_translate:of": lambda j, x, scale, method: j.image.scale_and_translate(
        x, (3, 4), (0, 1), j.numpy.asarray([scale, 1.5]), j.numpy.asarray([0.25, -0.5]), method
    ),
}
CALLS: dict[str, dict[str, Call]] = {
    "numpy": NUMPY, "lax": LAX, "random": RANDOM, "scipy.linalg": SCIPY_LINALG, "scipy.ndimage": NDIMAGE,
    "scipy.special": SPECIAL, "scipy.signal": SIGNAL, "lax.linalg": JAX_LINALG, "numpy.linalg": NUMPY_LINALG, "nn": NN,
    "image": IMAGE,
}  # fmt: skip
"""By namespace and by the name in the table."""
