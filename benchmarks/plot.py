"""A plot of ratios as SVG: a line for each case, a dot for each peer, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from . import report
from .harness import Outcome

COLOURS = {
    "jax": "#3b6fb6", "numpy": "#d9902f", "numba": "#4b9b5c", "torch": "#c0504d", "torch.compile": "#8c62a8",
    "iree": "#2a9d9d", "mlx": "#8a8a8a", "pytensor": "#b59a1c", "pythran": "#d46fa6",
}  # fmt: skip
LEFT, RIGHT, TOP, LINE, WIDTH = 190, 20, 46, 12, 900
LOWEST, HIGHEST = 0.1, 100.0
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def ratios(outcomes: Sequence[Outcome], peers: Sequence[str], speed: Callable[[Outcome, str], float | None]) -> str:
    """The text of the picture. Ratios beyond its edges are drawn on them."""
    rows: list[str | Outcome] = []
    for outcome in outcomes:
        if not rows or outcome.group != next(r.group for r in reversed(rows) if isinstance(r, Outcome)):
            rows.append(outcome.group)
        rows.append(outcome)
    height = TOP + LINE * len(rows) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="9">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="14" font-size="12">Time of a peer divided by hloom&#8217;s: '
        "right of 1, hloom is faster</text>",
    ]
    for k, peer in enumerate(peers):
        x = LEFT + 76 * k
        parts.append(f'<circle cx="{x}" cy="26" r="4" fill="{COLOURS[peer]}"/>')
        parts.append(f'<text x="{x + 8}" y="29">{report.NAMES[peer]}</text>')
    for tick in TICKS:
        x, colour = _place(tick), "#444" if tick == 1 else "#ddd"
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{height - 18}" stroke="{colour}"/>')
        parts += [f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{tick:g}</text>' for y in (TOP - 4, height - 6)]
    for k, row in enumerate(rows):
        y = TOP + LINE * k + LINE / 2 + 2
        if isinstance(row, str):
            parts.append(f'<text x="6" y="{y + 3}" font-weight="bold">{escape(row)}</text>')
            continue
        parts.append(f'<text x="{LEFT - 6}" y="{y + 3}" text-anchor="end">{escape(row.name)}</text>')
        for peer in peers:
            ratio = speed(row, peer)
            if ratio is not None:
                parts.append(
                    f'<circle cx="{_place(ratio):.1f}" cy="{y}" r="3.5" fill="{COLOURS[peer]}" fill-opacity="0.8">'
                    f"<title>{escape(row.title)}: {ratio:.2f} of {report.NAMES[peer]}</title></circle>"
                )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _place(ratio: float) -> float:
    part = math.log(min(max(ratio, LOWEST), HIGHEST) / LOWEST) / math.log(HIGHEST / LOWEST)
    return LEFT + part * (WIDTH - LEFT - RIGHT)
