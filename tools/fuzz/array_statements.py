"""The statements of array programs: each family is a function that draws one on the values there are.

A family gives a `Draft`: the text, its arguments and its blocks; the library itself says what types come out
(`ProgramDrawer.add`). Values stay of moderate size: products and powers are followed by something that bounds them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from .array_programs import Block, Statement, Var

UNARY_FLOAT = (
    "jnp.sin({0})", "jnp.cos({0})", "jnp.tanh({0})", "jnp.exp(-jnp.abs({0}))", "jnp.log1p(jnp.abs({0}))",
    "jnp.sqrt(jnp.abs({0}))", "jnp.square({0}) * 0.25", "jnp.arctan({0})", "jnp.expm1(jnp.clip({0}, -3, 3))",
    "jnp.log(jnp.abs({0}) + 0.5)", "jnp.sinh(jnp.clip({0}, -2, 2))", "jnp.cbrt({0})", "lax.rsqrt(jnp.abs({0}) + 0.1)",
    "lax.erf({0})", "lax.logistic({0})", "nn.relu({0})", "nn.gelu({0})", "nn.silu({0})", "nn.softplus({0})",
    "nn.elu({0})", "nn.leaky_relu({0})", "nn.log_sigmoid({0})", "nn.celu({0})", "nn.mish({0})", "nn.squareplus({0})",
    "jnp.nan_to_num({0})", "jnp.floor({0})", "jnp.round({0})", "jnp.trunc({0})", "jnp.sinc({0})", "jnp.exp2(-{0}**2)",
    "jnp.arcsinh({0})", "jnp.deg2rad({0})", "nn.hard_tanh({0})", "nn.soft_sign({0})", "jnp.tan({0} * 0.3)",
    "jnp.log2(jnp.abs({0}) + 1)", "jnp.arccos(jnp.tanh({0}))", "jnp.reciprocal(2 + jnp.cos({0}))", "-{0}", "{0} / 3",
    "jnp.heaviside({0}, 0.5)", "lax.integer_pow(jnp.tanh({0}), 3)", "jnp.tanh({0}) ** 2", "jnp.tanh({0}) ** 3.0",
)  # fmt: skip
UNARY_ANY = (
    "jnp.abs({0})", "jnp.sign({0})", "jnp.positive({0})", "jnp.isfinite({0})", "jnp.real({0})", "{0} * 2", "1 - {0}",
    "jnp.square({0})", "jnp.conj({0})", "{0} == {0}", "jnp.logical_not({0})", "jnp.zeros_like({0})", "{0}.astype(bool)",
    "lax.stop_gradient({0})", "jnp.signbit(jnp.real({0}))", "jnp.array({0})", "jnp.copy({0})", "jnp.atleast_2d({0})",
    "lax.optimization_barrier({0})", "{0}.ravel()", "{0}.T", "+{0}", "jnp.angle({0})", "jnp.imag({0})",
)  # fmt: skip
UNARY_INTEGER = (
    "~{0}", "lax.population_count({0})", "lax.clz({0})", "{0} << 1", "{0} >> 2", "{0} % 3", "{0} // 4", "-{0}",
    "{0} & 7", "jnp.invert({0})", "{0} ^ 5", "jnp.sqrt({0})", "jnp.sin({0})", "{0} / 2",
)  # fmt: skip
BINARY = (
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "jnp.maximum({0}, {1})", "jnp.minimum({0}, {1})", "{0} < {1}", "{0} >= {1}",
    "{0} == {1}", "jnp.where({0} > {1}, {0}, {1})", "jnp.logical_and({0}, {1})", "jnp.add({0}, {1})", "{0} != {1}",
    "jnp.logical_xor({0}, {1})", "jnp.multiply({0}, {1})", "jnp.isclose({0}, {1})", "{1} - {0}", "jnp.fmax({0}, {1})",
)  # fmt: skip
BINARY_REAL = (
    "jnp.arctan2({0}, {1})", "jnp.hypot({0}, {1})", "jnp.logaddexp({0}, {1})", "{0} / (jnp.abs({1}) + 1)",
    "jnp.copysign({0}, {1})", "jnp.abs({0}) ** jnp.tanh({1})", "jnp.remainder({0}, jnp.abs({1}) + 0.5)",
    "jnp.fmod({0}, jnp.abs({1}) + 0.5)", "jnp.floor_divide({0}, jnp.abs({1}) + 0.5)", "jnp.fmin({0}, {1})",
    "jnp.heaviside({0}, {1})", "jnp.power(jnp.abs({0}) + 0.5, jnp.clip({1}, -2, 2))", "jnp.logaddexp2({0}, {1})",
)  # fmt: skip
BINARY_INTEGER = (
    "{0} & {1}", "{0} | {1}", "{0} ^ {1}", "{0} // {1}", "{0} % {1}", "jnp.left_shift({0}, {1} & 3)", "{0} / {1}",
    "jnp.right_shift({0}, {1} & 3)", "lax.div({0}, {1})", "lax.rem({0}, {1})", "jnp.floor_divide({0}, {1})",
    "jnp.power({0}, {1} & 3)", "jnp.fmod({0}, {1})", "jnp.divmod({0}, {1})[1]", "jnp.bitwise_and({0}, {1})",
)  # fmt: skip
REDUCTIONS = (
    "jnp.sum({0}, {a})", "jnp.mean({0}, {a})", "jnp.max({0}, {a})", "jnp.min({0}, {a})", "jnp.var({0}, {a})",
    "jnp.std({0}, {a})", "nn.logsumexp({0}, {a})", "jnp.any({0}, {a})", "jnp.all({0}, {a})", "jnp.prod({0}, {a})",
    "jnp.nansum({0}, {a})", "jnp.nanmax({0}, {a})", "jnp.count_nonzero({0}, {a})", "jnp.ptp({0}, {a})",
    "jnp.linalg.norm({0}, axis={a})", "jnp.nanmean({0}, {a})",
)  # fmt: skip
ALONG = (
    "jnp.cumsum({0}, {a})", "jnp.argmax({0}, {a})", "jnp.argmin({0}, {a})", "jnp.cumprod(jnp.tanh({0}), {a})",
    "lax.cummax({0}, {a})", "lax.cummin({0}, {a})", "jnp.flip({0}, {a})", "jnp.roll({0}, 1, {a})",
    "jnp.diff({0}, axis={a})", "nn.softmax({0}, {a})", "nn.log_softmax({0}, {a})", "nn.standardize({0} * 1.0, {a})",
    "jnp.repeat({0}, 2, {a})", "lax.cumlogsumexp({0}, {a})", "jnp.concatenate([{0}, {0}], {a})",
    "jnp.stack([{0}, {0} + 1], {a})", "jnp.expand_dims({0}, {a})", "lax.cumsum({0}, {a}, reverse=True)",
    "jnp.append({0}, {0}, {a})", "jnp.roll({0}, -2, {a})", "jnp.split({0}, 1, {a})[0]", "jnp.moveaxis({0}, {a}, 0)",
    "jnp.swapaxes({0}, {a}, 0)", "lax.rev({0}, ({a},))", "jnp.max({0}, {a}, keepdims=True)",
    "lax.cumprod(jnp.tanh({0}), {a})",
)  # fmt: skip
SHAPES = (
    "{0}.reshape(-1)", "jnp.transpose({0})", "{0}[None]", "jnp.squeeze({0})", "jnp.tile({0}, 2)", "jnp.tril({0})",
    "jnp.triu({0}, 1)", "jnp.pad({0}, 1)", "jnp.pad({0}, 1, mode='edge')", "{0}[::-1]", "{0}[..., ::2]", "{0}[1:]",
    "{0}[:-1]", "{0}[..., -1]", "{0}[0]", "jnp.atleast_1d({0})", "jnp.broadcast_to({0}, (2, *{0}.shape))",
    "jnp.pad({0}, 1, mode='wrap')", "jnp.pad({0}, 1, mode='reflect')", "jnp.diag({0})", "jnp.rot90({0})",
    "jnp.fliplr({0})", "jnp.trace({0})", "jnp.diagonal({0})", "{0}[..., None]", "jnp.ravel({0})",
    "jnp.expand_dims({0}, (0, -1))", "{0}[-1:]", "{0}[:, 0]", "{0}[1::2, ::-1]", "jnp.matrix_transpose({0})",
    "jnp.array_split({0}, 2)[0]", "jnp.vstack([{0}, {0}])", "jnp.hstack([{0}, {0}])",
    "jnp.kron({0}, jnp.ones(2, {0}.dtype))",
)  # fmt: skip
UPDATES = ("set", "add", "multiply", "min", "max", "subtract", "divide", "power", "get")
DTYPES = ("float32", "float32", "float64", "float16", "bfloat16", "int32", "int8", "uint8", "int64", "uint32", "bool",
          "complex64", "int16", "uint16")  # fmt: skip
LITERALS = ("2", "-1", "0.5", "3.0", "True", "np.float32(1.5)", "np.int8(3)", "1j", "0", "np.float64(0.25)")


@dataclass(frozen=True, slots=True)
class Draft:
    """A statement before its types are known. `count`: how many targets it has; None: one for each result."""

    template: str
    arguments: tuple[str, ...]
    blocks: tuple[Block, ...] = ()
    count: int = 1


@dataclass(slots=True)
class Values:
    """The values of a family. `inner` makes a block: parameters, number of steps, the results that it must have."""

    rng: random.Random
    values: list[Var]
    depth: int
    differentiable: bool
    inner: Callable[..., Block | None] = field(repr=False)

    def any(self, wanted: Callable[[Var], bool] = lambda v: True) -> Var | None:
        found = [v for v in self.values if wanted(v)]
        if not found:
            return None
        return self.rng.choice(found[-3:] if self.rng.random() < 0.6 else found)

    def kind(self) -> Callable[[Var], bool]:
        """Floats only, in programs that are differentiated."""
        return (lambda v: v.is_float) if self.differentiable else (lambda v: True)

    def choose(self, *templates: str) -> str:
        return self.rng.choice(templates)


Family = Callable[[Values], "Draft | None"]


def unary(draw: Values) -> Draft | None:
    x = draw.any(draw.kind())
    if x is None:
        return None
    pool = [*UNARY_ANY]
    if x.is_float or x.is_complex:
        pool += UNARY_FLOAT * 2
    if x.is_integer or x.dtype == "bool":
        pool += UNARY_INTEGER
    if draw.differentiable:
        pool.remove("lax.stop_gradient({0})")  # differences see through it
    return Draft(draw.rng.choice(pool), (x.name,))


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1]))


def binary(draw: Values) -> Draft | None:
    x = draw.any(draw.kind())
    if x is None:
        return None
    if draw.rng.random() < 0.2:
        template = draw.choose("{0} * LIT", "LIT + {0}", "{0} - LIT", "jnp.maximum({0}, LIT)", "LIT * {0}", "{0} / LIT",
                               "jnp.where({0} > 0, {0}, LIT)", "LIT - {0}", "{0} < LIT", "{0} ** 2")  # fmt: skip
        literal = draw.rng.choice(LITERALS[:6] if draw.differentiable else LITERALS)
        return Draft(template.replace("LIT", literal), (x.name,))
    y = draw.any(lambda v: _broadcasts(x.shape, v.shape) and draw.kind()(v) and v.size * x.size <= 40_000)
    if y is None:
        return None
    pool = [*BINARY]
    if not (x.is_complex or y.is_complex):
        pool += BINARY_REAL if x.is_float or y.is_float else BINARY_INTEGER
    return Draft(draw.rng.choice(pool), (x.name, y.name))


def ternary(draw: Values) -> Draft | None:
    x = draw.any(draw.kind())
    if x is None:
        return None
    y = draw.any(lambda v: v.shape == x.shape and draw.kind()(v)) or x
    c = draw.any(lambda v: v.dtype == "bool" and v.shape in ((), x.shape))
    if c is not None:
        return Draft(draw.choose("jnp.where({0}, {1}, {2})", "lax.select({0}, {1}, {2}.astype({1}.dtype))"),
                     (c.name, x.name, y.name))  # fmt: skip
    pool = ["jnp.clip({0}, -1, 1)", "jnp.where({1} > 0, {0}, {1})", "jnp.select([{0} > 1], [{1}], {0})"]
    if not draw.differentiable:  # bounds are often equal to what they bound: kinks
        pool += ["lax.clamp(jnp.zeros_like({0}), {0}, {1}.astype({0}.dtype))", "jnp.clip({0}, {1}, None)"]
    return Draft(draw.rng.choice(pool), (x.name, y.name))


def reduction(draw: Values) -> Draft | None:
    x = draw.any(draw.kind())
    if x is None:
        return None
    axes = [None, *range(-x.rank, x.rank)]
    axis = str(draw.rng.choice(axes))
    if x.rank > 1 and draw.rng.random() < 0.2:
        axis = str(tuple(sorted(draw.rng.sample(range(x.rank), 2))))
    return Draft(draw.rng.choice(REDUCTIONS).replace("{a}", axis), (x.name,))


def along(draw: Values) -> Draft | None:
    x = draw.any(lambda v: v.rank > 0 and draw.kind()(v) and v.size <= 2000)
    if x is None:
        return None
    template = draw.rng.choice(ALONG)
    if "softmax" in template and x.dtype.startswith("uint"):
        template = template.replace("{0}", "{0} * 1.0")  # docs/differences.md: JAX subtracts integers, which wraps
    return Draft(template.replace("{a}", str(draw.rng.randrange(x.rank))), (x.name,))


def shaped(draw: Values) -> Draft | None:
    x = draw.any(lambda v: draw.kind()(v) and v.size <= 2000 and v.rank < 4)
    if x is None:
        return None
    if draw.rng.random() < 0.3 and x.rank:
        return Draft(f"{{0}}[{_index(draw, x, static=True)}]", (x.name,))
    if draw.rng.random() < 0.15 and x.size and x.rank:
        divisors = [d for d in range(1, x.size + 1) if x.size % d == 0]
        return Draft(f"{{0}}.reshape({draw.rng.choice(divisors)}, -1)", (x.name,))
    return Draft(draw.rng.choice(SHAPES), (x.name,))


def _index(draw: Values, x: Var, static: bool) -> str:
    """The text of an index, without its brackets."""
    parts = []
    for size in x.shape[: draw.rng.randint(1, x.rank)]:
        kind = draw.rng.randrange(5)
        if kind == 0 and size:
            parts.append(str(draw.rng.randrange(-size, size)))
        elif kind == 1:
            start, stop = (draw.rng.choice(["", str(draw.rng.randint(-size - 1, size + 1))]) for _ in range(2))
            parts.append(f"{start}:{stop}")
        elif kind == 2:
            step = draw.rng.choice((2, -1, -2, 3))
            parts.append(f"::{step}")
        elif kind == 3 and not static:
            parts.append("{1}")
        else:
            parts.append(":")
    if draw.rng.random() < 0.15:
        parts.insert(draw.rng.randrange(len(parts) + 1), "None")
    if draw.rng.random() < 0.15:
        parts.append("...")
    return ", ".join(parts)


def _integer_scalar(draw: Values) -> Var | None:
    return draw.any(lambda v: v.rank == 0 and v.is_integer)


def update(draw: Values) -> Draft | None:
    x = draw.any(lambda v: v.rank > 0 and draw.kind()(v))
    if x is None:
        return None
    i = _integer_scalar(draw)
    index = _index(draw, x, static=i is None)
    if "None" in index:
        return None
    method = draw.rng.choice(UPDATES)
    names = [x.name, i.name if i else x.name]
    if method == "get":
        return Draft(f"{{0}}.at[{index}].get()", tuple(names))
    y = draw.any(lambda v: v.rank == 0 and draw.kind()(v))
    value = "2" if y is None or draw.rng.random() < 0.3 else "{2}"
    if value == "{2}" and y is not None:
        names.append(y.name)
        if method == "power" and y.is_integer and not x.is_float and not x.is_complex:
            value = "{2} & 3"  # docs/differences.md: JAX takes six bits of an exponent
    return Draft(f"{{0}}.at[{index}].{method}({value})", tuple(names))


def dynamic(draw: Values) -> Draft | None:
    x = draw.any(lambda v: v.rank > 0 and draw.kind()(v))
    i = _integer_scalar(draw)
    if x is None or i is None:
        return None
    sizes = tuple(draw.rng.randint(min(1, n), n) for n in x.shape)
    starts = ", ".join(draw.rng.choice(["{1}", "0", "{1} + 1"]) for _ in sizes)
    rest = ", ".join(["0"] * (x.rank - 1))
    match draw.rng.randrange(5):
        case 0:
            return Draft(f"lax.dynamic_slice({{0}}, ({starts},), {sizes})", (x.name, i.name))
        case 1:
            piece = f"jnp.ones({sizes}, {{0}}.dtype) * {{0}}.ravel()[:1].sum().astype({{0}}.dtype)"
            return Draft(f"lax.dynamic_update_slice({{0}}, {piece}, ({starts},))", (x.name, i.name))
        case 2:
            return Draft("{0}[{1}]", (x.name, i.name))
        case 3:
            return Draft("lax.dynamic_index_in_dim({0}, {1}, 0, keepdims=False)", (x.name, i.name))
        case _:
            return Draft(f"lax.dynamic_update_slice({{0}}, {{0}}[:1] * 2, ({{1}}{', ' + rest if rest else ','}))",
                         (x.name, i.name))  # fmt: skip


def product(draw: Values) -> Draft | None:
    x = draw.any(lambda v: 0 < v.rank <= 3 and draw.kind()(v))
    if x is None:
        return None
    y = draw.any(lambda v: v.rank > 0 and v.shape[-2 if v.rank > 1 else 0] == x.shape[-1] and draw.kind()(v)
                 and v.size * x.size <= 40_000)  # fmt: skip
    if y is None:
        return Draft(draw.choose("jnp.vdot({0}, {0})", "jnp.tensordot({0}, {0}, {0}.ndim)", "jnp.outer({0}, {0})[:3]",
                                 "jnp.einsum('...i->...', {0})", "jnp.einsum('i...,i...->...', {0}, {0})"),
                     (x.name,))  # fmt: skip
    pool = ["{0} @ {1}", "jnp.matmul({0}, {1})", "jnp.dot({0}, {1})"]
    if x.rank == y.rank == 2:
        pool += ["jnp.einsum('ij,jk->ki', {0}, {1})", "jnp.tensordot({0}, {1}, 1)", "jnp.einsum('ij,jk->ik', {0}, {1})",
                 "lax.dot_general({0}, {1}.astype({0}.dtype), (((1,), (0,)), ((), ())))"]  # fmt: skip
    return Draft(f"jnp.tanh({draw.rng.choice(pool)} * 0.25)" if draw.rng.random() < 0.5 else draw.rng.choice(pool),
                 (x.name, y.name))  # fmt: skip


def converted(draw: Values) -> Draft | None:
    x = draw.any(draw.kind())
    if x is None or draw.differentiable:
        return None
    return Draft(f"{{0}}.astype('{draw.rng.choice(DTYPES)}')", (x.name,))


def made(draw: Values) -> Draft | None:
    dtype = draw.choose("float32", "int32", "float32", "uint8", "bool")
    shape = tuple(draw.rng.choice((0, 1, 2, 3, 5)) for _ in range(draw.rng.randint(0, 2)))
    x = draw.any()
    if x is not None and x.rank:
        shape = draw.rng.choice([shape, x.shape, x.shape[-1:]])
    n = draw.rng.randint(0, 5)
    return Draft(draw.choose(f"jnp.full({shape}, {n}, '{dtype}')", f"jnp.arange({n})", f"jnp.linspace(0, 1, {n})",
                             f"lax.iota('{dtype if dtype != 'bool' else 'int32'}', {n})", f"jnp.eye({n}, {n + 1})",
                             f"jnp.zeros({shape}, '{dtype}')", f"jnp.asarray({n})", f"jnp.asarray({n}.5)",
                             f"jnp.arange(1., {n}, 0.5)", "jnp.int32(2)", f"jnp.tri({n})",
                             f"jax.random.bits(jax.random.key({n}), {shape}, 'uint32')",
                             f"jax.random.uniform(jax.random.key({n}), {shape})"), ())  # fmt: skip


# ---- control flow and transformations: families with blocks


def _several(draw: Values, most: int = 3) -> list[Var]:
    found = []
    for _ in range(draw.rng.randint(1, most)):
        v = draw.any(draw.kind())
        if v is not None and v not in found:
            found.append(v)
    return found


def _names(variables: list[Var]) -> tuple[str, ...]:
    return tuple(v.name for v in variables)


def cond(draw: Values) -> Draft | None:
    operands = _several(draw)
    if not operands:
        return None
    wanted = [draw.rng.choice(operands) for _ in range(draw.rng.randint(1, 2))]
    test = draw.any(lambda v: v.rank == 0 and not v.is_complex)
    names = _names(operands)
    if test is None:
        predicate, names = "({0} == {0}).all()", names
    else:
        predicate, names = f"{{{len(names)}}} > 0", (*names, test.name)
    count = draw.rng.choice((2, 2, 3))
    blocks = []
    for _ in range(count):
        block = draw.inner(operands, draw.rng.randint(1, 4), wanted)
        if block is None:
            return None
        blocks.append(block)
    given = ", ".join(f"{{{k}}}" for k in range(len(operands)))
    if count == 3:
        index = f"jnp.int32({predicate}) + jnp.int32({{0}}.size)" if test is not None else "1"
        return Draft(f"lax.switch({index}, [{{f0}}, {{f1}}, {{f2}}], {given})", names, tuple(blocks), len(wanted))
    return Draft(f"lax.cond({predicate}, {{f0}}, {{f1}}, {given})", names, tuple(blocks), len(wanted))


def fori(draw: Values) -> Draft | None:
    state = _several(draw)
    if not state:
        return None
    counter = Var("i", (), "int32")
    block = draw.inner([counter, *state], draw.rng.randint(1, 4), state, whole=True)
    if block is None:
        return None
    body = _unpacking(replace(block, parameters=(block.parameters[0], "carry")), block.parameters[1:])
    given = ", ".join(f"{{{k}}}" for k in range(len(state)))
    bounds = draw.choose("0, 3", "1, 2", "0, 0", "2, -1", "-1, 2")
    i = None if draw.differentiable else _integer_scalar(draw)
    names = _names(state)
    if i is not None and i.dtype == "int32" and draw.rng.random() < 0.3:
        bounds, names = f"0, jnp.clip({{{len(names)}}}, 0, 4)", (*names, i.name)
    return Draft(f"lax.fori_loop({bounds}, {{f0}}, ({given},))", names, (body,), len(state))


def _unpacking(block: Block, names: tuple[str, ...]) -> Block:
    """The block with a first statement that takes its parameter `carry` apart."""
    template = "{0}" if len(names) > 1 else "{0}[0]"
    first = Statement(tuple(Var(name, (), "") for name in names), template, ("carry",), (), "constant")
    return replace(block, statements=(first, *block.statements))


def while_loop(draw: Values) -> Draft | None:
    state = _several(draw)
    if not state:
        return None
    block = draw.inner([Var("n", (), "int32"), *state], draw.rng.randint(1, 4), state, whole=True)
    if block is None:
        return None
    counter, first = block.parameters[:2]
    following = Statement((Var(f"{counter}_next", (), "int32"),), "{0} + 1", (counter,), (), "constant")
    body = Block(("carry",), (*block.statements, following), (f"{counter}_next", *block.results))
    below = f"{{0}} < {draw.rng.randint(0, 4)}"
    if draw.rng.random() < 0.3:
        below = f"({below}) & (jnp.sum(jnp.isfinite({{1}})) >= 0)"
    test = Statement((Var(f"{counter}_test", (), "bool"),), below, (counter, first), (), "constant")
    condition = Block(("carry",), (test,), (f"{counter}_test",), "{}")
    given = ", ".join(f"{{{k}}}" for k in range(len(state)))
    blocks = (_unpacking(condition, block.parameters), _unpacking(body, block.parameters))
    return Draft(f"lax.while_loop({{f0}}, {{f1}}, (0, {given}))[1:]", _names(state), blocks, len(state))


def scan(draw: Values) -> Draft | None:
    state = _several(draw, 2)
    xs = draw.any(lambda v: v.rank > 0 and v.shape[0] <= 6 and draw.kind()(v))
    if not state or xs is None:
        return None
    element = Var("e", xs.shape[1:], xs.dtype)
    block = draw.inner([*state, element], draw.rng.randint(1, 5), state, whole=True, extra=1)
    if block is None:
        return None
    *carry, last = block.parameters
    body = replace(block, parameters=("carry", last), form=_pair_form(len(block.results)))
    given = ", ".join(f"{{{k}}}" for k in range(len(state)))
    options = draw.choose("", "", ", reverse=True", ", unroll=2")
    call = f"lax.scan({{f0}}, ({given},), {{{len(state)}}}{options})"
    return Draft(f"(lambda r: (*r[0], r[1]))({call})", (*_names(state), xs.name), (_unpacking(body, tuple(carry)),),
                 len(state) + 1)  # fmt: skip


def _pair_form(count: int) -> str:
    """Carries as a tuple, then the last result: the names come with commas between."""
    return f"(lambda *r: (r[:{count - 1}], r[{count - 1}]))({{}})"


def called(draw: Values) -> Draft | None:
    """jit, checkpoint and the like around a block."""
    operands = _several(draw)
    if not operands:
        return None
    wanted = [draw.rng.choice(operands) for _ in range(draw.rng.randint(1, 2))]
    block = draw.inner(operands, draw.rng.randint(1, 5), wanted)
    if block is None:
        return None
    given = ", ".join(f"{{{k}}}" for k in range(len(operands)))
    how = draw.choose("jax.jit({f0})", "jax.checkpoint({f0})", "jax.jit(jax.jit({f0}))",
                      "jax.checkpoint(jax.jit({f0}))")  # fmt: skip
    return Draft(f"{how}({given})", _names(operands), (block,), len(wanted))


def derivative(draw: Values) -> Draft | None:
    """A derivative of a block of floats."""
    x = draw.any(lambda v: v.is_float and v.size <= 300)
    if x is None:
        return None
    block = draw.inner([x], draw.rng.randint(1, 6), [x], smooth=True)
    if block is None:
        return None
    function = "(lambda t: {f0}(t)[0])"
    loss = f"(lambda t: jnp.sum({function}(t)))"
    template = draw.choose(
        f"jax.grad({loss})({{0}})", f"jax.jvp({function}, ({{0}},), (jnp.ones_like({{0}}),))[1]",
        f"jax.vjp({function}, {{0}})[1](jnp.ones_like({{0}}))[0]", f"jax.linearize({function}, {{0}})[1]({{0}})",
        f"jax.value_and_grad({loss})({{0}})[1]", f"jax.jvp(jax.grad({loss}), ({{0}},), ({{0}},))[1]",
        f"jax.grad(lambda t: jnp.sum(jax.grad({loss})(t)))({{0}})", f"jax.grad(jax.checkpoint({loss}))({{0}})",
        f"jax.jit(jax.grad({loss}))({{0}})", f"jax.grad(jax.jit({loss}))({{0}})",
    )  # fmt: skip
    if x.size <= 6 and draw.rng.random() < 0.3:
        template = draw.choose(f"jax.jacfwd({function})({{0}})", f"jax.jacrev({function})({{0}})",
                               f"jax.hessian({loss})({{0}})")  # fmt: skip
    return Draft(template, (x.name,), (block,), 1)


def mapped(draw: Values) -> Draft | None:
    """vmap of a block over the first dimension."""
    operands = [v for v in _several(draw) if v.rank > 0]
    operands = [v for v in operands if v.shape[0] == operands[0].shape[0]]
    if not operands:
        return None
    rows = [Var(v.name, v.shape[1:], v.dtype) for v in operands]
    wanted = [draw.rng.choice(rows) for _ in range(draw.rng.randint(1, 2))]
    block = draw.inner(rows, draw.rng.randint(1, 5), wanted)
    if block is None:
        return None
    given = ", ".join(f"{{{k}}}" for k in range(len(operands)))
    return Draft(f"jax.vmap({{f0}})({given})", _names(operands), (block,), len(wanted))


FAMILIES: dict[str, tuple[Family, int]] = {
    "unary": (unary, 6), "binary": (binary, 8), "ternary": (ternary, 2), "reduction": (reduction, 4),
    "along": (along, 3), "shaped": (shaped, 4), "update": (update, 3), "dynamic": (dynamic, 2), "product": (product, 2),
    "converted": (converted, 2), "made": (made, 2),
}  # fmt: skip
WITH_BLOCKS: dict[str, tuple[Family, int]] = {
    "cond": (cond, 1), "fori": (fori, 1), "while_loop": (while_loop, 1), "scan": (scan, 1), "called": (called, 1),
    "derivative": (derivative, 2), "mapped": (mapped, 2),
}  # fmt: skip
