"""Random functions of arrays whose sizes are letters, so that one function has arguments of any sizes.

Operations are chosen by letters alone: what is equal by chance at some sizes makes no other function.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import hloom
import hloom.numpy as jnp
from hloom import lax, nn

Letters = tuple[str, ...]
Step = tuple[Letters, Callable[..., Any], tuple[int, ...]]
"""The letters of the result, how it is computed, and from which values."""

ARGUMENTS: tuple[Letters, ...] = (("n", "m"), ("n", "m"), ("m", "k"), ("m",), ("n",), ("k", "n"), ("n", "m", "k"))

_ELEMENTWISE: tuple[Callable[[Any], Any], ...] = (
    jnp.tanh, lambda x: x * 0.5 + 0.25, lambda x: -x * x, lambda x: jnp.maximum(x, 0.3), lambda x: x / 3,
    lambda x: jnp.where(x > 0, x, 0.1 * x), lambda x: x * (1.5 + x.size),
)  # fmt: skip
_BINARY: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x + y, lambda x, y: x * y, lambda x, y: jnp.where(x > y, x - y, y), jnp.minimum,
)  # fmt: skip
_REDUCTIONS: tuple[Callable[[Any, int], Any], ...] = (
    lambda x, axis: x.sum(axis), lambda x, axis: x.mean(axis), lambda x, axis: x.max(axis, initial=-9.0),
)  # fmt: skip


def random_function(seed: int) -> Callable[..., Any]:
    """A function of arrays with the sizes `ARGUMENTS`, whose results are some of the values on the way."""
    rng = random.Random(seed)
    values: list[Letters] = list(ARGUMENTS)
    steps = [_step(rng, values) for _ in range(rng.randint(3, 14))]
    count = rng.randint(1, 4)
    kept = sorted(rng.sample(range(len(ARGUMENTS), len(values)), min(count, len(values) - len(ARGUMENTS))))

    def function(*arguments: Any) -> Any:
        found = list(arguments)
        for _, compute, operands in steps:
            found.append(compute(*[found[k] for k in operands]))
        return tuple([found[k] for k in kept])

    if rng.random() < 0.25:
        return hloom.grad(lambda *arguments: sum([jnp.sum(r * r) for r in function(*arguments)]), (0, 2, 3))
    return function


def _step(rng: random.Random, values: list[Letters]) -> Step:
    while True:
        found = rng.choice(_STEPS)(rng, values)
        if found is not None:
            values.append(found[0])
            return found


def _elementwise(rng: random.Random, values: Sequence[Letters]) -> Step:
    k = _late(rng, values)
    return values[k], rng.choice(_ELEMENTWISE), (k,)


def _binary(rng: random.Random, values: Sequence[Letters]) -> Step:
    k = _late(rng, values)
    other = rng.choice([j for j, letters in enumerate(values) if letters == values[k]])
    return values[k], rng.choice(_BINARY), (k, other)


def _row(rng: random.Random, values: Sequence[Letters]) -> Step | None:
    k = _late(rng, values)
    rows = [j for j, v in enumerate(values) if len(v) == 1 and values[k] and values[k][-1:] == v]
    return None if not rows else (values[k], rng.choice(_BINARY), (k, rng.choice(rows)))


def _column(rng: random.Random, values: Sequence[Letters]) -> Step | None:
    k = _late(rng, values)
    columns = [j for j, v in enumerate(values) if len(values[k]) == 2 and v == values[k][:1]]
    if not columns:
        return None
    operation = rng.choice(_BINARY)
    return values[k], lambda x, c: operation(x, c[:, None]), (k, rng.choice(columns))


def _reduction(rng: random.Random, values: Sequence[Letters]) -> Step | None:
    k = _late(rng, values)
    if not values[k]:
        return None
    axis, operation = rng.randrange(len(values[k])), rng.choice(_REDUCTIONS)
    return values[k][:axis] + values[k][axis + 1 :], lambda x: operation(x, axis), (k,)


def _softmax(rng: random.Random, values: Sequence[Letters]) -> Step | None:
    k = _late(rng, values)
    return None if len(values[k]) < 2 else (values[k], nn.softmax, (k,))


def _transposed(rng: random.Random, values: Sequence[Letters]) -> Step | None:
    k = _late(rng, values)
    return None if len(values[k]) < 2 else (values[k][::-1], lambda x: x.transpose(), (k,))


def _product(rng: random.Random, values: Sequence[Letters]) -> Step | None:
    k = _late(rng, values)
    others = [j for j, v in enumerate(values) if len(v) == len(values[k]) == 2 and v[0] == values[k][1]]
    if not others:
        return None
    other = rng.choice(others)
    return (values[k][0], values[other][1]), lambda x, y: x @ y, (k, other)


def _sliced(rng: random.Random, values: Sequence[Letters]) -> Step | None:
    k = _late(rng, values)
    if not values[k] or len(values[k][0]) > 3:
        return None
    part = rng.choice((slice(1, None), slice(None, -1)))
    return (f"{values[k][0]}-1", *values[k][1:]), lambda x: x[part], (k,)


def _padded(rng: random.Random, values: Sequence[Letters]) -> Step | None:
    k = _late(rng, values)
    if not values[k] or not values[k][0].endswith("-1"):
        return None
    low, width = rng.randint(0, 1), len(values[k]) - 1
    ends = [(low, 1 - low), *[(0, 0)] * width]
    # of one row less than none there is none
    return (f"{values[k][0]}+1", *values[k][1:]), lambda x: jnp.pad(x, ends), (k,)


def _joined(rng: random.Random, values: Sequence[Letters]) -> Step | None:
    k = _late(rng, values)
    if not values[k] or len(values[k][0]) > 3:
        return None
    others = [j for j, v in enumerate(values) if v[1:] == values[k][1:] and v and len(v[0]) <= 3]
    other = rng.choice(others)
    letters = (f"{values[k][0]}|{values[other][0]}", *values[k][1:])
    return letters, lambda x, y: jnp.concatenate([x, y]), (k, other)


def _flat(rng: random.Random, values: Sequence[Letters]) -> Step | None:
    k = _late(rng, values)
    if len(values[k]) < 2 or len(values[k][0]) > 3:
        return None
    letters = (f"{values[k][0]}*{values[k][1]}", *values[k][2:])
    return letters, lambda x: x.reshape(x.shape[0] * x.shape[1], *x.shape[2:]), (k,)


def _rolled(rng: random.Random, values: Sequence[Letters]) -> Step | None:
    k = _late(rng, values)
    return None if not values[k] else (values[k], lambda x: jnp.roll(x, 1, len(values[k]) - 1), (k,))


def _loop(rng: random.Random, values: Sequence[Letters]) -> Step:
    k = _late(rng, values)
    count = rng.randint(1, 6)
    return values[k], lambda x: lax.fori_loop(0, count, lambda i, y: y * 0.5 + x * i, x), (k,)


def _late(rng: random.Random, values: Sequence[Letters]) -> int:
    """Any value, rather a late one."""
    return max(rng.randrange(len(values)), rng.randrange(len(values)))


_STEPS: tuple[Callable[[random.Random, Sequence[Letters]], Step | None], ...] = (
    _elementwise, _elementwise, _elementwise, _binary, _binary, _row, _row, _column, _column, _reduction, _reduction,
    _softmax, _transposed, _product, _sliced, _padded, _joined, _flat, _rolled, _loop,
)  # fmt: skip


def random_sizes(rng: random.Random, count: int) -> list[Mapping[str, int]]:
    """Sizes for the letters: any, equal by chance, with two letters swapped, and with a size that is small."""
    found: list[Mapping[str, int]] = []
    for _ in range(count):
        sizes = {letter: rng.choice((5, 6, 8, 12, 16, 17, 31, 33, 48, 64, 100)) for letter in "nmk"}
        found.append(sizes)
        kind = rng.randrange(4)
        if kind == 0:
            found.append({**sizes, "n": sizes["m"]})
        elif kind == 1:
            found.append({**sizes, "n": sizes["m"], "m": sizes["n"]})
        elif kind == 2:
            found.append({**sizes, rng.choice("nmk"): rng.randint(0, 2)})
        else:
            found.append(dict.fromkeys("nmk", sizes["k"]))
    return found


def random_arguments(sizes: Mapping[str, int], seed: int) -> list[np.ndarray]:
    """Arrays of these sizes."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal([sizes[letter] for letter in letters]).astype(np.float32) for letters in ARGUMENTS]
