"""A kernel that is made faster by hand: the compiler's schedule and another one, both kernels, and their times.

A few vectors times a large matrix is at the speed of memory: each row of the matrix is read once, and added to sums
that stay in a cache. The compiler takes four rows in one go. Here eight are taken, so that each sum is loaded and
stored half as often. On a processor with 32 vector registers that is faster; one with 16 has not enough of them.

    python examples/schedule_by_hand.py
    python examples/schedule_by_hand.py --rows 2 --full
    python examples/schedule_by_hand.py --of columns      # the same for sums of columns, a fused computation
    python examples/schedule_by_hand.py --out out/schedule.png     # a picture of 1 to 16 rows in one go
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import hloom
import hloom.numpy as jnp


def product(vectors: Any, matrix: Any) -> Any:
    """``f32[vectors, k] @ f32[k, n]``"""
    return vectors @ matrix


def columns(_: Any, matrix: Any) -> Any:
    """The sums of squares of the columns of ``f32[k, n]``."""
    return (matrix * matrix).sum(0)


def with_rows(schedule: tuple[Any, ...], rows: int) -> tuple[Any, ...]:
    """The schedule with another number of rows in one go: the step `Split` whose blocks are called "rows"."""
    return tuple(replace(step, size=rows) if getattr(step, "outer", "") == "rows" else step for step in schedule)


def seconds(functions: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The median time of a call of each, in turns."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for function, found in zip(functions, times, strict=True):
            started = time.perf_counter()
            for _ in range(10):
                function().block_until_ready()
            found.append((time.perf_counter() - started) / 10)
    return [statistics.median(found) for found in times]


def draw(plain: Any, arguments: tuple[Any, Any], rounds: int, path: Path) -> None:
    """A picture: the speed for 1 to 16 rows in one go, with the compiler's choice in another colour."""
    import common  # needs matplotlib

    name, kernel = next(iter(plain.lower(*arguments).compile().kernels().items()))
    counts = (1, 2, 4, 8, 16)
    variants = [hloom.schedule(plain, {name: with_rows(kernel.schedule, rows)}) for rows in counts]
    taken = seconds([lambda variant=variant: variant(*arguments) for variant in variants], rounds)
    speeds = [arguments[1].nbytes / 1e9 / each for each in taken]
    picture = common.figure(kernel.algorithm, "One kernel, with other numbers of rows in one go", 4.2)
    axes = picture.add_axes((0.09, 0.15, 0.86, 0.56))
    chosen = [with_rows(kernel.schedule, rows) == kernel.schedule for rows in counts]
    colours = [common.GOLD if mine else common.BLUE for mine in chosen]
    bars = axes.bar([str(rows) for rows in counts], speeds, 0.6, color=colours)
    axes.bar_label(bars, [f"{speed:.1f}" for speed in speeds], fontsize=9, color=common.INK, padding=2)
    common.style(axes, "Gold: the compiler's schedule", "rows of the matrix in one go", "gigabytes a second")
    axes.grid(False, axis="x")
    common.save(picture, path)
    print(f"The picture: {path}")


def main() -> None:
    """Print both schedules, or both kernels, and the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", choices=("product", "columns"), default="product", help="the program")
    parser.add_argument("--rows", type=int, default=8, help="rows of the matrix in one go (default: 8)")
    parser.add_argument("--size", type=int, default=4000, help="columns of the matrix, of 1000 rows (default: 4000)")
    parser.add_argument("--rounds", type=int, default=30, help="measurements of each (default: 30)")
    parser.add_argument("--full", action="store_true", help="print the kernels, not only their schedules")
    parser.add_argument("--out", type=Path, metavar="PNG", help="a picture of 1 to 16 rows in one go")
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    vectors = jnp.asarray(rng.standard_normal((4, 1000), np.float32))
    matrix = jnp.asarray(rng.standard_normal((1000, options.size), np.float32))

    plain = hloom.jit(product if options.of == "product" else columns)
    name, kernel = next(iter(plain.lower(vectors, matrix).compile().kernels().items()))
    by_hand = hloom.schedule(plain, {name: with_rows(kernel.schedule, options.rows)})
    other = by_hand.lower(vectors, matrix).compile().kernels()[name]
    # The results of this call are compared with the reference evaluator's.
    hloom.schedule(plain, {name: other.schedule}, check=True)(vectors, matrix)

    for title, text in (("The compiler's schedule", kernel), ("By hand", other)):
        print(f"{title}: {text.algorithm}\n")
        print(text if options.full else "".join(f"    {step}\n" for step in text.schedule))
    before, after = seconds([lambda: plain(vectors, matrix), lambda: by_hand(vectors, matrix)], options.rounds)
    gigabytes = matrix.nbytes / 1e9
    for title, taken in (("The compiler's schedule", before), ("By hand", after)):
        print(f"{title}: {taken * 1e6:.0f} us, {gigabytes / taken:.1f} GB/s")
    print(f"By hand: {before / after:.2f} times as fast")
    if options.out:
        draw(plain, (vectors, matrix), options.rounds, options.out)


if __name__ == "__main__":
    main()
