"""Collectives of several devices, and what they mean: written once more with NumPy, for all devices together.

A case has the text of a module, the number of its replicas and partitions, and a function from the devices' arguments
to the devices' results. It shares nothing with the library: groups are written out as devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

NDArray: TypeAlias = np.ndarray[Any, Any]
Meaning: TypeAlias = Callable[[list[NDArray]], list[Any]]
"""meaning(the operand of each device) -> the result of each device."""

DTYPES = {
    "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "s32": np.int32,
    "u8": np.uint8, "s64": np.int64, "pred": np.bool_, "c64": np.complex64, "u32": np.uint32,
}  # fmt: skip


class Collective(NamedTuple):
    """One collective instruction of operand `p`, in a module of its own."""

    name: str
    replicas: int
    partitions: int
    dtype: str
    dimensions: tuple[int, ...]
    result: str
    """The type of the result."""
    instruction: str
    """The instruction, on operand p."""
    meaning: Meaning
    reducer: str = ""
    scalars: str = ""
    """Further instructions before it."""

    @property
    def text(self) -> str:
        """The module."""
        scalar = f"{self.dtype}[]"
        reducer = (
            f"combine {{ a = {scalar} parameter(0)\n b = {scalar} parameter(1)\n ROOT c = {scalar} {self.reducer} }}\n"
            if self.reducer
            else ""
        )
        operand = f"{self.dtype}[{','.join(map(str, self.dimensions))}]"
        counts = f"replica_count={self.replicas}, num_partitions={self.partitions}"
        body = f"p = {operand} parameter(0)\n{self.scalars}\nROOT r = {self.result} {self.instruction}"
        return f"HloModule m, {counts}\n{reducer}ENTRY e {{\n{body}\n}}\n"

    def arguments(self, seed: int = 0) -> list[NDArray]:
        """An array for each device."""
        rng = np.random.default_rng(seed)
        dtype = np.dtype(DTYPES[self.dtype])
        found = []
        for _ in range(self.replicas * self.partitions):
            if dtype.kind == "c":
                values: NDArray = rng.standard_normal(self.dimensions) + 1j * rng.standard_normal(self.dimensions)
            elif dtype.kind in "biu":
                values = rng.integers(0, 2 if dtype.kind == "b" else 50, self.dimensions)
            else:
                values = rng.standard_normal(self.dimensions)
            found.append(np.asarray(values).astype(dtype))
        return found


GROUPS: dict[str, tuple[int, int, str, list[list[int]]]] = {
    "all replicas": (4, 1, "replica_groups={}", [[0, 1, 2, 3]]),
    "one group, another order": (4, 1, "replica_groups={{2,0,3,1}}", [[2, 0, 3, 1]]),
    "pairs": (4, 1, "replica_groups={{0,2},{3,1}}", [[0, 2], [3, 1]]),
    "each alone": (2, 1, "replica_groups={{0},{1}}", [[0], [1]]),
    "three": (3, 1, "replica_groups={{0,1,2}}", [[0, 1, 2]]),
    "replicas of each partition": (2, 2, "replica_groups={{0,1}}", [[0, 2], [1, 3]]),
    "replicas of each partition, all": (2, 2, "replica_groups={}", [[0, 2], [1, 3]]),
    "flattened": (2, 2, "channel_id=1, use_global_device_ids=true, replica_groups={{0,3},{1,2}}", [[0, 3], [1, 2]]),
    "flattened, all": (2, 2, "channel_id=1, use_global_device_ids=true, replica_groups={}", [[0, 1, 2, 3]]),
    "iota": (1, 4, "channel_id=2, use_global_device_ids=true, replica_groups=[2,2]<=[2,2]T(1,0)", [[0, 2], [1, 3]]),
}
"""Replicas, partitions, the text, and the groups of devices; for reductions, gathers and scatters."""

JOINED = {
    "with their partitions": (4, 2, "channel_id=3, replica_groups={{0,1},{3,2}}", [[0, 1, 2, 3], [6, 7, 4, 5]]),
    "all, with a channel": (2, 2, "channel_id=3, replica_groups={}", [[0, 1, 2, 3]]),
}
"""The same, where a channel without global ids means replicas with all their partitions."""

OF_PARTITIONS = {
    "partitions": (2, 2, "channel_id=3, replica_groups={{1,0}}", [[1, 0], [3, 2]]),
    "all partitions": (2, 3, "channel_id=3, replica_groups={}", [[0, 1, 2], [3, 4, 5]]),
}
"""The same, where a channel means partitions: all-to-all, broadcast, permute."""

SIZES = ((), (0,), (1,), (7,), (3, 5))
REDUCERS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "add": ("add(a, b)", lambda a, b: a + b),
    "multiply": ("multiply(a, b)", lambda a, b: a * b),
    "maximum": ("maximum(a, b)", np.maximum),
    "minimum": ("minimum(a, b)", np.minimum),
    "first": ("subtract(a, b)", lambda a, b: a - b),
}


def in_order(parts: Sequence[NDArray], combine: Callable[[Any, Any], Any], dtype: Any) -> NDArray:
    """The parts combined from the first to the last; halves in f32, rounded once."""
    wide = np.float32 if np.dtype(dtype).itemsize == 2 and np.dtype(dtype).kind in "fV" else dtype
    total = parts[0].astype(wide)
    for part in parts[1:]:
        total = combine(total, part.astype(wide)).astype(wide)
    return total.astype(dtype)


def _in_groups(groups: list[list[int]], of_group: Callable[[list[NDArray]], list[Any]]) -> Meaning:
    def meaning(values: list[NDArray]) -> list[Any]:
        results: list[Any] = [None] * len(values)
        for group in groups:
            for device, result in zip(group, of_group([values[d] for d in group]), strict=True):
                results[device] = result
        return results

    return meaning


def _type(dtype: str, dimensions: Sequence[int]) -> str:
    return f"{dtype}[{','.join(map(str, dimensions))}]"


def _all_reduce(
    name: str, groups: tuple[int, int, str, list[list[int]]], dtype: str, dimensions: tuple[int, ...], reducer: str
) -> Collective:
    replicas, partitions, text, devices = groups
    written, combine = REDUCERS[reducer]
    meaning = _in_groups(devices, lambda vs: [in_order(vs, combine, DTYPES[dtype])] * len(vs))
    instruction = f"all-reduce(p), {text}, to_apply=combine"
    label = f"all-reduce {reducer} {_type(dtype, dimensions)} {name}"
    return Collective(
        label, replicas, partitions, dtype, dimensions, _type(dtype, dimensions), instruction, meaning, written
    )


def cases() -> Iterator[Collective]:
    """All cases."""
    groups_of_reductions = {**GROUPS, **JOINED}
    for name, groups in groups_of_reductions.items():
        yield _all_reduce(name, groups, "f32", (7,), "add")
        yield _all_reduce(name, groups, "bf16", (130, 150), "add")  # so large that it is cut
        yield from _gathers_and_scatters(name, groups)
    for dtype in DTYPES:
        if dtype != "pred":
            yield _all_reduce("all replicas", GROUPS["all replicas"], dtype, (7,), "add")
            yield _all_reduce("all replicas", GROUPS["all replicas"], dtype, (9001,), "multiply")
    for dimensions in SIZES:
        yield _all_reduce("pairs", GROUPS["pairs"], "f32", dimensions, "maximum")
        yield _all_reduce("three", GROUPS["three"], "s32", dimensions, "first")
    yield from _exchanges()
    yield from _permutes()
    yield from _broadcasts()


def _gathers_and_scatters(name: str, groups: tuple[int, int, str, list[list[int]]]) -> Iterator[Collective]:
    replicas, partitions, text, devices = groups
    n = len(devices[0])
    for dimensions, d in (((3,), 0), ((2, 3), 0), ((2, 3), 1), ((2, 0, 3), 1), ((3, 4, 900), 2)):
        gathered = [s * n if k == d else s for k, s in enumerate(dimensions)]
        gather = _in_groups(devices, lambda vs, d=d: [np.concatenate(vs, d)] * len(vs))  # type: ignore[misc]
        label = f"{_type('f32', dimensions)} along {d} {name}"
        instruction = f"all-gather(p), {text}, dimensions={{{d}}}"
        yield Collective(
            f"all-gather {label}", replicas, partitions, "f32", dimensions, _type("f32", gathered), instruction, gather
        )
        scatter = _in_groups(
            devices,
            lambda vs, d=d: np.split(in_order(vs, np.add, np.float32), len(vs), d),  # type: ignore[misc]
        )
        instruction = f"reduce-scatter(p), {text}, dimensions={{{d}}}, to_apply=combine"
        yield Collective(
            f"reduce-scatter {label}", replicas, partitions, "f32", tuple(gathered), _type("f32", dimensions),
            instruction, scatter, "add(a, b)",
        )  # fmt: skip


def _exchanges() -> Iterator[Collective]:
    for name, (replicas, partitions, text, devices) in {**GROUPS, **OF_PARTITIONS}.items():
        if "use_global" in text:
            continue
        n = len(devices[0])
        for dimensions, d in (((2 * n,), 0), ((3, n), 1), ((n, 0), 0)):
            meaning = _in_groups(
                devices,
                lambda vs, d=d, n=n: [  # type: ignore[misc]
                    np.concatenate([np.split(v, n, d)[k] for v in vs], d) for k in range(n)
                ],
            )
            type_ = _type("s32", dimensions)
            yield Collective(
                f"all-to-all {type_} along {d} {name}", replicas, partitions, "s32", dimensions, type_,
                f"all-to-all(p), {text}, dimensions={{{d}}}", meaning,
            )  # fmt: skip
        others = ", ".join(f"p{k}" for k in range(n))
        scalars = "\n".join(
            f"c{k} = f32[] constant({k + 1})\nb{k} = f32[5] broadcast(c{k}), dimensions={{}}\n"
            f"p{k} = f32[5] multiply(p, b{k})"
            for k in range(n)
        )
        tuple_meaning = _in_groups(
            devices, lambda vs, n=n: [tuple(v * np.float32(k + 1) for v in vs) for k in range(n)]  # type: ignore[misc]
        )
        yield Collective(
            f"all-to-all of a tuple {name}", replicas, partitions, "f32", (5,), f"({', '.join(['f32[5]'] * n)})",
            f"all-to-all({others}), {text}", tuple_meaning, scalars=scalars,
        )  # fmt: skip


_PAIRS = {
    "a ring": (3, 1, "source_target_pairs={{0,1},{1,2},{2,0}}", [(0, 1), (1, 2), (2, 0)]),
    "a shift": (4, 1, "source_target_pairs={{0,1},{1,2},{2,3}}", [(0, 1), (1, 2), (2, 3)]),
    "to oneself": (2, 1, "source_target_pairs={{0,0},{1,1}}", [(0, 0), (1, 1)]),
    "one to several": (3, 1, "source_target_pairs={{1,0},{1,2}}", [(1, 0), (1, 2)]),
    "none": (2, 1, "source_target_pairs={}", []),
    "of partitions": (2, 2, "channel_id=1, source_target_pairs={{0,1}}", [(0, 1), (2, 3)]),
    "of replicas": (2, 2, "source_target_pairs={{1,0}}", [(2, 0), (3, 1)]),
}


def _permutes() -> Iterator[Collective]:
    for name, (replicas, partitions, text, pairs) in _PAIRS.items():
        def meaning(values: list[NDArray], pairs: list[tuple[int, int]] = pairs) -> list[Any]:
            results = [np.zeros_like(v) for v in values]
            for source, target in pairs:
                results[target] = values[source]
            return results

        for dtype, dimensions in (("f32", (3,)), ("pred", ()), ("bf16", (0, 2)), ("f64", (77, 100))):
            type_ = _type(dtype, dimensions)
            yield Collective(
                f"collective-permute {type_} {name}", replicas, partitions, dtype, dimensions, type_,
                f"collective-permute(p), {text}", meaning,
            )  # fmt: skip


def _broadcasts() -> Iterator[Collective]:
    for name, (replicas, partitions, text, devices) in {**GROUPS, **OF_PARTITIONS}.items():
        if "use_global" in text:
            continue
        meaning = _in_groups(devices, lambda vs: [vs[0]] * len(vs))
        yield Collective(
            f"collective-broadcast {name}", replicas, partitions, "f32", (3, 2), "f32[3,2]",
            f"collective-broadcast(p), {text}", meaning,
        )  # fmt: skip
        last = _in_groups(devices, lambda vs: [vs[-1]] * len(vs))
        scalars = f"root = s32[1] constant({{{len(devices[0]) - 1}}})"
        yield Collective(
            f"collective-broadcast from the last {name}", replicas, partitions, "f32", (3, 2), "f32[3,2]",
            f"collective-broadcast(p, root), {text}, has_dynamic_root=true", last, scalars=scalars,
        )  # fmt: skip
    meaning = lambda values: [np.zeros_like(values[0]), values[2], values[2]]  # noqa: E731
    yield Collective(
        "collective-broadcast to some", 3, 1, "f32", (4,), "f32[4]", "collective-broadcast(p), replica_groups={{2,1}}",
        meaning,
    )  # fmt: skip


CASES = list(cases())
