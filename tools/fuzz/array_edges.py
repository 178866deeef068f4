"""Statements at the edges of types and sizes: the ends of integers, indices of every type and mode, weights of zero,
keys, matrices with one triangle. The families are drawn together with the families of `array_statements`."""

from __future__ import annotations

from .array_programs import Var
from .array_statements import FAMILIES, Draft, Family, Values

_MAX, _MIN = "jnp.iinfo({0}.dtype).max", "jnp.iinfo({0}.dtype).min"
ENDS = (
    f"{{0}} + {_MAX}", f"({{0}} + {_MAX}) > {{0}}", f"({{0}} + {_MIN}) < {{0}}", f"{{0}} - {_MIN}", f"{{0}} * {_MAX}",
    f"jnp.abs({{0}} | {_MIN})", f"-({{0}} & 1) * {_MAX} - 1", f"jnp.minimum({{0}}, {_MAX})", f"{{0}} < {_MAX}",
    f"({{0}} & 1) * {_MIN} // -1", f"lax.div({{0}} | {_MAX}, {{0}} | 1)", f"lax.rem({{0}} + {_MIN}, {{0}} | 1)",
    f"jnp.sum({{0}} + {_MAX})", f"jnp.clip({{0}}, {_MIN}, {_MAX})", f"({{0}} + {_MAX}) // 2", f"({{0}} + {_MIN}) % 7",
    f"jnp.where(lax.broadcasted_iota({{0}}.dtype, {{0}}.shape, 0) <= {_MAX}, {{0}}, 1)",
    f"jnp.where(lax.broadcasted_iota({{0}}.dtype, {{0}}.shape, 0) > {_MAX}, {{0}}, 1)",
    f"jnp.cumsum({{0}} + {_MAX})", f"jnp.sort(({{0}} + {_MAX}).ravel())", f"jnp.max(({{0}} + {_MAX}), initial={_MIN})",
)  # fmt: skip
"""Of integers with one dimension at least; they wrap."""
SHIFTS = (
    "lax.shift_left({0}, {0})", "lax.shift_right_logical({0}, {0} * 9)", "lax.shift_right_arithmetic({0}, -{0})",
    "{0} << 40", "{0} >> 40", "lax.shift_left({0}, lax.full_like({0}, {n}))",
)  # fmt: skip
INDEX_DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
MODES = ("'clip'", "'fill'", "'drop'", "'wrap'", "'promise_in_bounds'", "None")



def ends(draw: Values) -> Draft | None:
    x = draw.any(lambda v: v.is_integer and v.rank > 0)
    if x is None or draw.differentiable:
        return None
    if draw.rng.random() < 0.25:
        n = draw.rng.choice((-1, 0, 7, 8, 31, 32, 63, 64, 100))
        return Draft(draw.rng.choice(SHIFTS).replace("{n}", str(n)), (x.name,))
    return Draft(draw.rng.choice(ENDS), (x.name,))


def _places(draw: Values, size: int, dtype: str, inside: bool) -> list[int]:
    """Some indices of a dimension, negative ones and those outside among them unless `inside`."""
    low = 0 if dtype.startswith("u") else -size
    pool = list(range(low, size)) if size else []
    if not inside:
        pool += [size, size + 3, 100] + ([] if dtype.startswith("u") else [-size - 1, -100])
    return [draw.rng.choice(pool) for _ in range(draw.rng.choice((0, 1, 2, 3)))] if pool else []


def indexed(draw: Values) -> Draft | None:
    """Reads and writes by an array of any integer type, in any mode, of arrays of any size."""
    x = draw.any(lambda v: v.rank > 0 and draw.kind()(v))
    if x is None:
        return None
    dtype, mode = draw.rng.choice(INDEX_DTYPES), draw.rng.choice(MODES)
    axis = draw.rng.randrange(x.rank)
    places = _places(draw, x.shape[axis], dtype, mode in ("'promise_in_bounds'",) or draw.differentiable)
    if mode == "'wrap'" and not x.shape[axis]:
        return None  # there is nothing to wrap around
    index = f"jnp.array({places}, '{dtype}')"
    at = f"{{0}}.at[{':, ' * axis}{index}]"
    return Draft(draw.choose(
        f"{at}.get(mode={mode})", f"jnp.take({{0}}, {index}, {axis}, mode={mode})", f"{at}.add(1, mode={mode})",
        f"{at}.max(2, mode={mode})", f"{at}.set({{0}}.ravel()[:1].sum().astype({{0}}.dtype), mode={mode})",
    ), (x.name,))  # fmt: skip


def scalar_index(draw: Values) -> Draft | None:
    """Starts and places of every integer type, also traced ones."""
    x = draw.any(lambda v: v.rank > 0 and draw.kind()(v) and v.shape[0] > 0)
    i = draw.any(lambda v: v.rank == 0 and v.is_integer)
    if x is None or i is None:
        return None
    dtype = draw.rng.choice(INDEX_DTYPES)
    # docs/differences.md: JAX takes unsigned indices from 2**31 on for negative ones.
    place = f"jnp.abs({{1}}).astype('{dtype}')" if dtype.startswith("u") else f"{{1}}.astype('{dtype}')"
    rest = ", ".join(["0"] * (x.rank - 1))
    starts = f"({place}, {rest})" if rest else f"({place},)"
    sizes = tuple(draw.rng.randint(min(1, n), n) for n in x.shape)
    return Draft(draw.choose(
        f"{{0}}[{place}]", f"lax.dynamic_slice({{0}}, {starts}, {sizes})", f"{{0}}.at[{place}].add(1)",
        f"lax.dynamic_index_in_dim({{0}}, {place}, 0)", f"{{0}}.at[{place}].get(mode='clip')",
        f"lax.dynamic_update_slice({{0}}, {{0}}[:1], {starts})", f"jnp.roll({{0}}, [{place}], 0)",
    ), (x.name, i.name))  # fmt: skip


def weighted(draw: Values) -> Draft | None:
    x = draw.any(lambda v: v.is_float and v.size <= 300)
    if x is None or draw.differentiable:
        return None
    return Draft(draw.choose(
        "nn.logsumexp({0}, b=jnp.where({0} > 0, 1, 0).astype({0}.dtype))", "nn.logsumexp({0}, where={0} > 0)",
        "jnp.mean({0}, where={0} > 0)", "jnp.max({0}, where={0} > 9, initial=-1)", "nn.softmax({0}, where={0} == {0})",
        "lax.select_n((jnp.abs({0}) > 1).astype('uint8'), {0}, -{0})", "jnp.average({0}, weights=jnp.abs({0}) + 1)",
    ), (x.name,))  # fmt: skip


def keys(draw: Values) -> Draft | None:
    n = draw.rng.randint(0, 5)
    made = f"jax.random.split(jax.random.key({n}), 3)"
    return Draft(draw.choose(
        f"jax.random.key_data({made}.at[jnp.array([0, 2])].set(jax.random.key(1)))",
        f"jax.random.bits({made}[1], (2,))",
        f"jax.random.key_data(jnp.where(jnp.arange(3) > 0, {made}, jax.random.key(2)))",
        f"jax.random.key_data(jnp.concatenate([{made}, {made}])[::2])", f"jax.random.key_data({made}.T[-1])",
    ), ())  # fmt: skip


def triangle(draw: Values) -> Draft | None:
    """Functions that read one triangle: the other one has any numbers."""
    x = draw.any(lambda v: _is_square(v))
    if x is None or draw.differentiable:
        return None
    definite = "(jnp.tanh({0}) + 2 * {0}.shape[-1] * jnp.eye({0}.shape[-1], dtype={0}.dtype))"
    return Draft(draw.choose(
        f"lax.linalg.cholesky({definite}, symmetrize_input=False)",
        f"lax.linalg.triangular_solve({definite}, {{0}}, left_side=True, lower=True)",
        f"lax.linalg.triangular_solve({definite}, {{0}}, left_side=True, lower=False, unit_diagonal=True)",
    ), (x.name,))  # fmt: skip


def _is_square(v: Var) -> bool:
    return v.rank == 2 and v.shape[0] == v.shape[1] > 0 and v.dtype in ("float32", "float64")


EDGES: dict[str, tuple[Family, int]] = {
    "ends": (ends, 3), "indexed": (indexed, 3), "scalar_index": (scalar_index, 2), "weighted": (weighted, 1),
    "keys": (keys, 1), "triangle": (triangle, 1),
}  # fmt: skip
EXACT = (
    "sin", "cos", "tan", "tanh", "sinh", "cosh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "exp",
    "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "square", "reciprocal", "sinc", "rint", "floor",
)  # fmt: skip
"""Functions of `jax.numpy` of one argument with equal results, bit for bit, outside and inside of jit."""


def exact(draw: Values) -> Draft | None:
    x = draw.any(lambda v: v.is_float or v.is_complex)
    return None if x is None else Draft(f"jnp.{draw.rng.choice(EXACT)}({{0}})", (x.name,))


ALL: dict[str, tuple[Family, int]] = {**FAMILIES, **EDGES}
