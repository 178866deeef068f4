"""The speedup of a program over the number of devices, as a figure: the prediction of `hlo.scaling`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from ..analyses.cluster import Scaling
from .drawing import Drawing, Line, Rectangle, Text, to_svg
from .palette import FAINT, INK, PADDING_EDGE, PAPER

_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")
_WIDTH, _HEIGHT = 640.0, 400.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 60.0, 44.0, 190.0, 46.0
_SIZE = 12.0


def scaling_svg(curves: Mapping[str, Scaling], title: str = "Speedup over the number of devices") -> str:
    """A figure with a curve for each of `curves`, by its name: speedup over devices, both logarithmic, and the line of
    devices that lose nothing.

    >>> from hloom import hlo
    >>> cluster = hlo.Cluster(flops=1e9, inside=hlo.Link(1e-6, 1e10), between=hlo.Link(1e-5, 1e9))
    >>> module = hlo.parse("HloModule m ENTRY main { ROOT x = f32[8] parameter(0) }")
    >>> hlo.scaling_svg({"a program": hlo.scaling(lambda n: module, [1], cluster)}).startswith("<svg")
    True
    """
    drawing = Drawing(_WIDTH, _HEIGHT, title, PAPER)
    most = max((p.devices for curve in curves.values() for p in curve), default=1)
    doublings = max(1, math.ceil(math.log2(most)))
    for k in range(doublings + 1):
        x, y = _x(k, doublings), _y(k, doublings)
        drawing.items += [
            Line(x, _TOP, x, _HEIGHT - _BOTTOM, PADDING_EDGE),
            Line(_LEFT, y, _WIDTH - _RIGHT, y, PADDING_EDGE),
            Text(x, _HEIGHT - _BOTTOM + 14, str(1 << k), _SIZE, FAINT),
            Text(_LEFT - 8, y, str(1 << k), _SIZE, FAINT, "end"),
        ]
    drawing.items += [
        Line(_x(0, doublings), _y(0, doublings), _x(doublings, doublings), _y(doublings, doublings), FAINT),
        Text((_LEFT + _WIDTH - _RIGHT) / 2, 22, title, _SIZE + 2, INK, bold=True),
        Text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 14, "devices", _SIZE, INK),
        Text(_WIDTH - _RIGHT + 30, _TOP + 6, "nothing lost", _SIZE, FAINT, "start"),
        Line(_WIDTH - _RIGHT + 12, _TOP + 6, _WIDTH - _RIGHT + 24, _TOP + 6, FAINT),
    ]
    for number, (name, curve) in enumerate(curves.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        row = _TOP + 28 + 22 * number
        drawing.items += [
            Line(_WIDTH - _RIGHT + 12, row, _WIDTH - _RIGHT + 24, row, colour, 2.5),
            Text(_WIDTH - _RIGHT + 30, row, name, _SIZE, INK, "start"),
        ]
        points = [
            (_x(math.log2(p.devices), doublings), _y(math.log2(curve[0].seconds / p.seconds), doublings))
            for p in curve
            if p.seconds
        ]
        for (x1, y1), (x2, y2) in pairwise(points):
            drawing.items.append(Line(x1, y1, x2, y2, colour, 2.5))
        drawing.items += [Rectangle(x - 3, y - 3, 6, 6, colour, radius=3) for x, y in points]
    return to_svg(drawing)


def _x(doubling: float, doublings: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * doubling / doublings


def _y(doubling: float, doublings: int) -> float:
    """A slowdown is drawn at the bottom."""
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * max(doubling, 0.0) / doublings
