"""Whole modules of several devices: forms of collectives with several operands, halves in time, loops and branches.

Each has its text, the devices' arguments, and what each device's results are, worked out with NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

NDArray: TypeAlias = np.ndarray[Any, Any]


class Module(NamedTuple):
    """A module, and its meaning for all devices together."""

    text: str
    arguments: list[list[NDArray]]
    meaning: Callable[[list[list[NDArray]]], list[list[Any]]]


_ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
_RNG = np.random.default_rng(5)


def _floats(devices: int, *dimensions: tuple[int, ...]) -> list[list[NDArray]]:
    return [[_RNG.standard_normal(d).astype(np.float32) for d in dimensions] for _ in range(devices)]


def _total(values: list[NDArray]) -> NDArray:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _columns(arguments: list[list[NDArray]]) -> list[list[NDArray]]:
    return [list(column) for column in zip(*arguments)]


def _sums(arguments: list[list[NDArray]]) -> list[list[Any]]:
    return [[_total(column) for column in _columns(arguments)]] * len(arguments)


SEVERAL_OPERANDS = Module(
    f"""HloModule m, replica_count=3
{_ADD}
ENTRY e {{ x = f32[4] parameter(0)\n y = f32[] parameter(1)\n z = f32[200,70] parameter(2)
  ROOT r = (f32[4], f32[], f32[200,70]) all-reduce(x, y, z), replica_groups={{}}, to_apply=add }}""",
    _floats(3, (4,), (), (200, 70)),
    _sums,
)


def _gathered(arguments: list[list[NDArray]]) -> list[list[Any]]:
    x, y = _columns(arguments)
    return [[np.concatenate(x), np.concatenate(y)]] * len(arguments)


GATHER_OF_SEVERAL = Module(
    """HloModule m, replica_count=2
ENTRY e { x = f32[2,3] parameter(0)\n y = f32[1] parameter(1)
  ROOT r = (f32[4,3], f32[2]) all-gather(x, y), replica_groups={}, dimensions={0} }""",
    _floats(2, (2, 3), (1,)),
    _gathered,
)


def _halves(arguments: list[list[NDArray]]) -> list[list[Any]]:
    (x,) = _columns(arguments)
    return [[_total(x), np.concatenate(x, 1), x[1 - d]] for d in range(2)]


STARTS_AND_DONES = Module(
    f"""HloModule m, replica_count=2
{_ADD}
ENTRY e {{ x = f32[3,2] parameter(0)
  a = f32[3,2] all-reduce-start(x), replica_groups={{}}, to_apply=add
  g = (f32[3,2], f32[3,4]) all-gather-start(x), replica_groups={{}}, dimensions={{1}}
  p = (f32[3,2], f32[3,2], u32[], u32[]) collective-permute-start(x), source_target_pairs={{{{0,1}},{{1,0}}}}
  b = f32[3,2] all-reduce-done(a)
  h = f32[3,4] all-gather-done(g)
  q = f32[3,2] collective-permute-done(p)
  ROOT r = (f32[3,2], f32[3,4], f32[3,2]) tuple(b, h, q) }}""",
    _floats(2, (3, 2)),
    _halves,
)

ASYNC_COMPUTATION = Module(
    """HloModule m, replica_count=2
asked { x = s32[4] parameter(0)\n ROOT r = s32[4] all-to-all(x), replica_groups={}, dimensions={0} }
ENTRY e { x = s32[4] parameter(0)
  s = ((s32[4]), s32[4], u32[]) async-start(x), calls=asked
  u = ((s32[4]), s32[4], u32[]) async-update(s)
  ROOT r = s32[4] async-done(u) }""",
    [[np.arange(4, dtype=np.int32)], [np.arange(10, 14, dtype=np.int32)]],
    lambda arguments: [[np.int32([0, 1, 10, 11])], [np.int32([2, 3, 12, 13])]],
)


def _looped(arguments: list[list[NDArray]]) -> list[list[Any]]:
    values = [x for (x,) in arguments]
    for _ in range(5):
        total = _total([v * np.float32(0.25) for v in values])
        values = [total + np.float32(d) for d in range(4)]
    return [[v] for v in values]


LOOP = Module(
    f"""HloModule m, num_partitions=4
{_ADD}
cond {{ s = (s32[], f32[3]) parameter(0)\n i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)\n ROOT c = pred[] compare(i, n), direction=LT }}
body {{ s = (s32[], f32[3]) parameter(0)\n i = s32[] get-tuple-element(s), index=0
  x = f32[3] get-tuple-element(s), index=1
  one = s32[] constant(1)\n j = s32[] add(i, one)
  quarter = f32[] constant(0.25)\n h = f32[3] broadcast(quarter), dimensions={{}}
  y = f32[3] multiply(x, h)
  z = f32[3] all-reduce(y), channel_id=1, replica_groups={{{{0,1,2,3}}}}, use_global_device_ids=true, to_apply=add
  k = u32[] partition-id()\n kf = f32[] convert(k)\n kk = f32[3] broadcast(kf), dimensions={{}}
  w = f32[3] add(z, kk)
  ROOT t = (s32[], f32[3]) tuple(j, w) }}
ENTRY e {{ x = f32[3] parameter(0)\n z = s32[] constant(0)
  t = (s32[], f32[3]) tuple(z, x)
  w = (s32[], f32[3]) while(t), condition=cond, body=body
  ROOT r = f32[3] get-tuple-element(w), index=1 }}""",
    _floats(4, (3,)),
    _looped,
)

NO_DEVICE_TURNS = Module(
    f"""HloModule m, replica_count=2
{_ADD}
cond {{ s = (f32[3], f32[3]) parameter(0)\n ROOT c = pred[] constant(false) }}
body {{ s = (f32[3], f32[3]) parameter(0)\n x = f32[3] get-tuple-element(s), index=0
  z = f32[3] all-reduce(x), replica_groups={{}}, to_apply=add
  ROOT t = (f32[3], f32[3]) tuple(x, z) }}
ENTRY e {{ x = f32[3] parameter(0)\n t = (f32[3], f32[3]) tuple(x, x)
  w = (f32[3], f32[3]) while(t), condition=cond, body=body
  ROOT r = f32[3] get-tuple-element(w), index=1 }}""",
    _floats(2, (3,)),
    lambda arguments: arguments,
)

A_DIFFERENT_NUMBER_OF_TURNS = Module(
    f"""HloModule m, replica_count=4
{_ADD}
cond {{ s = (u32[], f32[3], f32[3]) parameter(0)\n i = u32[] get-tuple-element(s), index=0
  z = u32[] constant(0)\n ROOT c = pred[] compare(i, z), direction=GT }}
body {{ s = (u32[], f32[3], f32[3]) parameter(0)\n i = u32[] get-tuple-element(s), index=0
  x = f32[3] get-tuple-element(s), index=1
  one = u32[] constant(1)\n j = u32[] subtract(i, one)
  z = f32[3] all-reduce(x), replica_groups={{{{0,1}},{{2,3}}}}, to_apply=add
  ROOT t = (u32[], f32[3], f32[3]) tuple(j, x, z) }}
ENTRY e {{ x = f32[3] parameter(0)\n k = u32[] replica-id()\n two = u32[] constant(2)
  n = u32[] divide(k, two)
  t = (u32[], f32[3], f32[3]) tuple(n, x, x)
  w = (u32[], f32[3], f32[3]) while(t), condition=cond, body=body
  ROOT r = f32[3] get-tuple-element(w), index=2 }}""",
    _floats(4, (3,)),
    lambda a: [a[0], a[1], [a[2][0] + a[3][0]], [a[2][0] + a[3][0]]],
)

OF_CONSTANTS = Module(
    f"""HloModule m, replica_count=3
{_ADD}
ENTRY e {{ c = f32[2] constant({{1, 2}})
  r = f32[2] all-reduce(c), replica_groups={{}}, to_apply=add
  g = f32[6] all-gather(c), replica_groups={{}}, dimensions={{0}}
  ROOT t = (f32[2], f32[6]) tuple(r, g) }}""",
    [[], [], []],
    lambda arguments: [[np.float32([3, 6]), np.float32([1, 2, 1, 2, 1, 2])]] * 3,
)

NUMBERS = Module(
    """HloModule m, replica_count=2, num_partitions=3
ENTRY e { r = u32[] replica-id()\n p = u32[] partition-id()\n t = u32[] constant(10)
  u = u32[] multiply(r, t)\n ROOT v = u32[] add(u, p) }""",
    [[] for _ in range(6)],
    lambda arguments: [[np.uint32(10 * r + p)] for r in range(2) for p in range(3)],
)

_DATA = [np.arange(12, dtype=np.float32).reshape(6, 2) + 100 * d for d in range(2)]
_OUTPUT = np.full((5, 2), -1, np.float32)
_RANGES = [  # starts, sizes, places in the receiver's output, sizes to receive
    [np.int32([0, 2]), np.int32([2, 3]), np.int32([0, 0]), np.int32([2, 1])],
    [np.int32([1, 5]), np.int32([1, 1]), np.int32([2, 3]), np.int32([3, 1])],
]


def _ragged(arguments: list[list[NDArray]]) -> list[list[Any]]:
    results = [_OUTPUT.copy() for _ in arguments]
    for sender, (data, _, starts, sizes, places, _) in enumerate(arguments):
        for receiver in range(2):
            start, size, place = starts[receiver], sizes[receiver], places[receiver]
            assert arguments[receiver][5][sender] == size
            results[receiver][place : place + size] = data[start : start + size]
    return [[r] for r in results]


RAGGED = Module(
    """HloModule m, replica_count=2
ENTRY e { x = f32[6,2] parameter(0)\n o = f32[5,2] parameter(1)
  a = s32[2] parameter(2)\n b = s32[2] parameter(3)\n c = s32[2] parameter(4)\n d = s32[2] parameter(5)
  ROOT r = f32[5,2] ragged-all-to-all(x, o, a, b, c, d), replica_groups={{0,1}} }""",
    [[data, _OUTPUT, *ranges] for data, ranges in zip(_DATA, _RANGES)],
    _ragged,
)


def _slices(arguments: list[list[NDArray]]) -> list[list[Any]]:
    (x0, y0), (x1, y1) = arguments
    first, second = y0.copy(), y1.copy()
    second[2:4, 1:3] = x0[1:3, 0:2]
    first[2:4, 1:3] = x1[1:3, 0:2]
    return [[first], [second]]


SLICES = Module(
    """HloModule m, replica_count=2
ENTRY e { x = f32[4,3] parameter(0)\n y = f32[4,3] parameter(1)
  zero = s32[] constant(0)\n one = s32[] constant(1)\n two = s32[] constant(2)
  from = (s32[], s32[]) tuple(one, zero)\n to = (s32[], s32[]) tuple(two, one)
  ROOT r = f32[4,3] collective-permute(x, y, from, to), source_target_pairs={{0,1},{1,0}}, slice_sizes={{2,2}} }""",
    _floats(2, (4, 3), (4, 3)),
    _slices,
)

OTHER_LAYOUTS = Module(
    f"""HloModule m, replica_count=2
{_ADD}
ENTRY e {{ x = f32[3,200]{{0,1}} parameter(0)\n y = f32[3,200]{{0,1}} negate(x)
  r = f32[3,200]{{0,1}} all-reduce(y), replica_groups={{}}, to_apply=add
  ROOT g = f32[6,200]{{0,1}} all-gather(r), replica_groups={{}}, dimensions={{0}} }}""",
    _floats(2, (3, 200)),
    lambda a: [[np.concatenate([-a[0][0] - a[1][0]] * 2)]] * 2,
)

MODULES = {
    "several operands": SEVERAL_OPERANDS,
    "a gather of several": GATHER_OF_SEVERAL,
    "starts and dones": STARTS_AND_DONES,
    "an asynchronous computation": ASYNC_COMPUTATION,
    "a loop": LOOP,
    "a loop that no device runs": NO_DEVICE_TURNS,
    "loops of different lengths": A_DIFFERENT_NUMBER_OF_TURNS,
    "of constants": OF_CONSTANTS,
    "numbers of devices": NUMBERS,
    "ragged": RAGGED,
    "slices in place": SLICES,
    "other layouts": OTHER_LAYOUTS,
}
