"""Op cases of convolution."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..hlo import ElementType
from ..hlo.ops.convolution import ConvolutionAttributes
from ..hlo.window import ConvolutionDimensionNumbers, Window
from .op_case import ALL, Array, E, O, OpCase, make_case, shape_of
from .op_cases_window import placed, window_of
from .op_values import Values, finite, positive, small_floats


def _numbers(labels: str) -> ConvolutionDimensionNumbers:
    source, rest = labels.split("_")
    kernel, result = rest.split("->")
    digits = [str(d) for d in range(len(source) - 2)]
    return ConvolutionDimensionNumbers(
        source.index("b"), source.index("f"), tuple(source.index(d) for d in digits),
        kernel.index("i"), kernel.index("o"), tuple(kernel.index(d) for d in digits),
        result.index("b"), result.index("f"), tuple(result.index(d) for d in digits),
    )  # fmt: skip


def _sizes(labels: str, by_label: dict[str, int]) -> tuple[int, ...]:
    return tuple(by_label[label] for label in labels)


def _case(
    types: Sequence[ElementType],
    batch: int,
    features: int,
    spatial: Sequence[int],
    outputs: int,
    window: Window,
    labels: str = "",
    *,
    groups: int = 1,
    batch_groups: int = 1,
    kind: Values | None = None,
) -> OpCase:
    digits = "".join(map(str, range(len(spatial))))
    labels = labels or f"bf{digits}_oi{digits}->bf{digits}"
    source, rest = labels.split("_")
    kernel, result = rest.split("->")
    counts = placed(spatial, window)
    spatial_sizes = dict(zip(digits, spatial, strict=True))
    lhs = _sizes(source, {"b": batch, "f": features, **spatial_sizes})
    sizes = dict(zip(digits, (w.size for w in window), strict=True))
    rhs = _sizes(kernel, {"o": outputs, "i": features // groups, **sizes})
    out = _sizes(result, {"b": batch // batch_groups, "f": outputs, **dict(zip(digits, counts, strict=True))})
    kind = kind or (finite if types[0].is_integral or types[0] is E.PRED else positive)
    terms = math.prod(w.size for w in window) * features // groups
    attributes = ConvolutionAttributes(window, _numbers(labels), groups, batch_groups)
    parts = [".".join(map(str, (w.size, w.stride, w.padding_low, w.padding_high, w.base_dilation, w.window_dilation,
                                int(w.reversed)))) for w in window]  # fmt: skip
    note = f"{types[2].value}-{labels}-{','.join(parts)}-g{groups}.{batch_groups}"
    operands = [Array(types[0], lhs, kind), Array(types[1], rhs, kind)]
    ulps = 4 + terms if types[2].is_inexact else 0
    return make_case(O.CONVOLUTION, operands, shape_of(types[2], out), attributes, ulps=ulps, note=note)


def _reversed(window: Window, *which: int) -> Window:
    return tuple(replace(w, reversed=d in which) for d, w in enumerate(window))


_W33 = window_of((3, 1, 1, 1), (3, 1, 1, 1))


def cases() -> Iterator[OpCase]:
    """The cases of convolution."""
    f32 = (E.F32, E.F32, E.F32)
    for t in ALL:
        yield _case((t, t, t), 2, 3, (5, 6), 4, _W33)
        yield _case((t, t, t), 2, 4, (5, 7), 4, window_of((3, 2, 1, 0), (2, 1, 0, 1)), "b01f_01io->b01f", groups=2)
    wider = [
        (E.F16, E.F32), (E.BF16, E.F32), (E.F32, E.F64), (E.S8, E.S32), (E.U8, E.U32), (E.S32, E.S64),
        (E.C64, E.C128), (E.PRED, E.S32), (E.S8, E.F32), (E.S32, E.S8), (E.F32, E.BF16), (E.F64, E.F32),
    ]  # fmt: skip
    for t, result in wider:
        yield _case((t, t, result), 2, 3, (5, 6), 4, _W33)
    for t, result in [(E.S4, E.S4), (E.U4, E.U4), (E.F8E4M3FN, E.F32), (E.F8E5M2, E.BF16)]:
        yield _case((t, t, result), 2, 3, (5, 6), 4, _W33, kind=small_floats)
    yield _case((E.F32, E.BF16, E.F32), 2, 3, (5, 6), 4, _W33)
    for spatial, window in [
        ((), ()),
        ((7,), window_of((3,))),
        ((9,), window_of((3, 2, 1, 2, 1, 2))),
        ((6,), window_of((3, 2, 2, 1, 3, 2))),
        ((9,), window_of((2, 1, -3, -2))),
        ((9,), window_of((2, 1, -3, 4))),
        ((5,), window_of((2, 4, 9, 9))),
        ((7,), window_of((9,))),
        ((0,), window_of((2, 1, 3, 1))),
        ((1,), window_of((1,))),
        ((8, 9), window_of((1,), (1,))),
        ((8, 9), window_of((1, 2), (1, 3))),
        ((8, 9), window_of((8,), (9,))),
        ((8, 9), window_of((3, 2, 1, 1), (2, 3, 0, 1))),
        ((4, 5), window_of((3, 1, 2, 2, 2), (2, 1, 1, 1, 3))),
        ((6, 9), window_of((3, 1, 2, 2, 1, 2), (2, 1, 1, -1, 1, 3))),
        ((6, 5), _reversed(window_of((3, 1, 2, 1), (2, 2, 1, 1)), 0, 1)),
        ((6, 5), _reversed(window_of((3, 1, 2, 1), (2, 2, 1, 1)), 1)),
        ((4, 5, 6), window_of((2,), (3, 2, 1, 1), (2, 1, 0, 1, 2))),
        ((3, 2, 4, 3), window_of((2,), (2, 1, 1, 0), (1,), (2,))),
        ((12, 11), window_of((10, 1, 1, 1), (9, 1, 0, 1))),
    ]:  # fmt: skip
        digits = "".join(map(str, range(len(spatial))))
        for labels in (f"bf{digits}_oi{digits}->bf{digits}", f"b{digits}f_{digits}io->b{digits}f"):
            yield _case(f32, 2, 3, spatial, 6, window, labels)
            yield _case(f32, 2, 6, spatial, 6, window, labels, groups=6)
            yield _case((E.S32,) * 3, 2, 4, spatial, 6, window, labels, groups=2)
        yield _case(f32, 4, 3, spatial, 6, window, batch_groups=2)
    for labels in ("fb01_io01->bf01", "01bf_o01i->fb10", "b1f0_1oi0->10bf", "f01b_i01o->01bf", "fb01_01io->fb01"):
        yield _case(f32, 4, 6, (5, 7), 8, window_of((3, 1, 1, 0), (2, 2, 0, 1)), labels)
        yield _case(f32, 4, 6, (5, 7), 8, window_of((3, 1, 1, 0), (2, 2, 0, 1)), labels, groups=2)
        yield _case(f32, 4, 6, (5, 7), 8, window_of((3, 1, 1, 0), (2, 2, 0, 1)), labels, batch_groups=4)
    for batch, features, outputs in [(0, 3, 4), (2, 0, 4), (2, 3, 0), (1, 1, 1), (1, 1, 5), (5, 2, 1)]:
        yield _case(f32, batch, features, (5, 6), outputs, _W33)
        yield _case(f32, batch, features, (5, 6), outputs, _W33, "b01f_01io->b01f")
    yield _case(f32, 2, 6, (5, 6), 12, _W33, groups=6)
    yield _case(f32, 2, 6, (5, 6), 12, _W33, "b01f_01io->b01f", groups=6)
    yield _case(f32, 3, 40, (9, 30), 33, _W33)
    yield _case(f32, 3, 40, (9, 30), 33, _W33, "b01f_01io->b01f")
    yield _case((E.C64,) * 3, 2, 6, (7, 8), 4, window_of((3, 2, 1, 0, 2), (2, 1, 0, 1)), groups=2)
