#!/usr/bin/env python3
"""Runs test programs in the form of StableHLO's own: functions without arguments that check what they compute.

    python tools/stablehlo_tests.py PATH...                  # files, or folders with .mlir files
    python tools/stablehlo_tests.py PATH --backend numba     # compiled, instead of on the evaluator
    python tools/stablehlo_tests.py PATH --passed            # name what passes, too

`// -----` ends a program in a file. A program passes if every `check.*` operation of its functions holds. StableHLO's
repository has such programs in stablehlo/tests/interpret; `interpreter.run_parallel` in them runs a function on several
devices. The exit code is 1 if a program fails.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT)]

from hloom.hlo.backend import get_compiler  # noqa: E402
from hloom.hlo.collectives.world import local_device_count, set_local_device_count  # noqa: E402
from hloom.hlo.custom_calls import register_custom_call  # noqa: E402
from hloom.hlo.errors import HloError, UnsupportedError  # noqa: E402
from hloom.hlo.mlir.tree import (  # noqa: E402
    Block,
    Dense,
    Float,
    Function,
    Integer,
    Operation,
    Region,
    Type,
    TypeAttribute,
    Value,
)
from hloom.hlo.stablehlo.text import read  # noqa: E402
from hloom.hlo.stablehlo.to_hlo import hlo_of  # noqa: E402

from hloom.namespaces import backends  # noqa: E402, F401  # makes the backends known

NDArray = np.ndarray[Any, Any]


def programs(path: Path) -> Iterator[str]:
    """The programs in a file, each with as many lines before it as in the file."""
    text = path.read_text()
    start = 0
    for end in [*(m.start() for m in re.finditer(r"^// -----", text, re.MULTILINE)), len(text)]:
        if "func" in text[start:end]:
            yield "\n" * text.count("\n", 0, start) + text[start:end]
        start = end


class Program:
    """A program whose functions check themselves."""

    def __init__(self, text: str, file: str, backend: str) -> None:
        self._operations = read(text, file).regions[0].block.operations
        self._backend = backend
        self._probed: dict[str, list[NDArray]] = {}
        for operation in _all(self._operations):
            if operation.name == "interpreter.probe":
                self._record(operation)

    def _record(self, probe: Operation) -> None:
        """Make a custom call of a probe, which keeps what it gets and returns it."""
        name = str(probe.attributes["probe_id"])
        found = self._probed.setdefault(name, [])

        def keep(array: NDArray) -> NDArray:
            found.append(array)
            return array

        register_custom_call(f"probe.{name}", keep, replace=True)
        probe.name = "stablehlo.custom_call"
        probe.attributes = {"call_target_name": f"probe.{name}", "has_side_effect": True}

    def functions(self) -> Iterator[Operation]:
        """The functions that check something and take nothing."""
        for function in self._operations:
            if function.name == "func.func" and function.regions[0].blocks:
                block = function.regions[0].block
                if not block.arguments and any(each.name.startswith("check.") for each in block.operations):
                    yield function

    def run(self, function: Operation) -> list[str]:
        """What does not hold."""
        known: dict[Value, NDArray] = {}
        before: list[Operation] = []
        wanted: list[Operation] = []
        for operation in function.regions[0].block.operations:
            if operation.name == "interpreter.run_parallel":
                inputs = self._values(before, known, operation.operands)
                known |= zip(operation.results, self._on_devices(operation, inputs), strict=True)
            elif operation.name.startswith("check."):
                wanted.append(operation)
            else:
                before.append(operation)
        values = [value for check in wanted for value in check.operands]
        found = iter(self._values(before[:-1], known, values))
        failures = []
        for check in wanted:
            operands = [next(found) for _ in check.operands]
            if check.name == "check.expect_serialized_eq":
                number: Any = check.attributes.get("iteration")
                probed = self._probed.get(str(check.attributes["probe_id"]), [])
                operands += probed[number.value if isinstance(number, Integer) else 0 :][:1]
            failures.append(failure(check, operands))
        return [text for text in failures if text]

    def _values(
        self, operations: Sequence[Operation], known: dict[Value, NDArray], values: Sequence[Value]
    ) -> list[NDArray]:
        """The values that a function's operations compute."""
        made = {result for operation in operations for result in operation.results}
        if any(value not in made and value not in known for value in values):
            raise UnsupportedError("a value that a check needs is not computed before it")
        block = Block(list(known), [each for each in operations if each.name != "func.return"])
        block.operations.append(Operation("func.return", list(values)))
        types = tuple(value.type for value in known), tuple(value.type for value in values)
        main = _function("main", Region([block]), *types)
        others = [each for each in self._operations if each.attributes.get("sym_name") != "main"]
        module = hlo_of(_module([main, *others]))
        return get_compiler(self._backend).compile(module).execute(list(known.values()))

    def _on_devices(self, operation: Operation, inputs: list[NDArray]) -> list[NDArray]:
        """The results of a function on each device, one device after the other."""
        rows: Any = operation.attributes.get("programs")
        names = {symbol.names[0] for row in rows for symbol in row}
        if len(names) != 1 or "infeed" in operation.attributes:
            raise UnsupportedError("interpreter.run_parallel of several functions, or with an infeed")
        (name,) = names
        (called,) = [each for each in self._operations if each.attributes.get("sym_name") == name]
        kind: Any = called.attributes["function_type"]
        main = _function("main", called.regions[0], kind.type.inputs, kind.type.results)
        module = hlo_of(_module([main]))
        module = replace(module, replica_count=len(rows), num_partitions=len(rows[0]))
        count = len(rows) * len(rows[0])
        set_local_device_count(max(local_device_count(), count))
        each = len(inputs) // count
        arguments = [inputs[k * each : (k + 1) * each] for k in range(count)]
        results = get_compiler(self._backend).compile(module).execute_on_devices(arguments)
        return [result for device in results for result in device]


def _all(operations: Sequence[Operation]) -> Iterator[Operation]:
    """The operations and all inside of them."""
    for operation in operations:
        yield operation
        for region in operation.regions:
            for block in region.blocks:
                yield from _all(block.operations)


def _function(name: str, body: Region, inputs: tuple[Type, ...], results: tuple[Type, ...]) -> Operation:
    attributes: Any = {"sym_name": name, "function_type": TypeAttribute(Function(inputs, results))}
    return Operation("func.func", [], [], attributes, [body])


def _module(functions: list[Operation]) -> Operation:
    return Operation("builtin.module", regions=[Region([Block(operations=functions)])])


def failure(check: Operation, operands: list[NDArray]) -> str:
    """Why a check does not hold; "" if it does."""
    value = check.attributes.get("value")
    if len(operands) + isinstance(value, Dense) < 2:
        return f"{check.name}: nothing was probed"
    found, expected = operands[0], value.array if isinstance(value, Dense) else operands[1]
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"{check.name}: {found.dtype}{found.shape} is not {expected.dtype}{expected.shape}"
    tolerance: Any = check.attributes.get("tolerance")
    if check.name.startswith(("check.expect_eq", "check.expect_serialized_eq")):
        fine = _equal(found, expected)
    elif check.name.startswith("check.expect_almost_eq"):
        limit = np.uint64(tolerance.bits).view(np.float64) if isinstance(tolerance, Float) else 1e-4
        wide = np.complex128 if found.dtype.kind == "c" else np.float64
        with np.errstate(invalid="ignore"):
            fine = _equal(found, expected) | (np.abs(found.astype(wide) - expected.astype(wide)) <= limit)
    else:
        most: Any = check.attributes.get("max_ulp_difference")
        least: Any = check.attributes.get("min_ulp_difference")
        distances = _distances(found, expected)
        fine = distances <= (most.value if isinstance(most, Integer) else 1)
        if isinstance(least, Integer) and least.value and not (distances >= least.value).any():
            return f"{check.name}: no distance is {least.value}"
    if np.all(fine):
        return ""
    place = tuple(int(index) for index in np.argwhere(~np.asarray(fine))[0]) if found.ndim else ()
    return f"{check.name}: at {list(place)} {found[place]} is not {expected[place]}"


def _equal(found: NDArray, expected: NDArray) -> NDArray:
    if found.dtype.kind == "c":
        return _equal(found.real, expected.real) & _equal(found.imag, expected.imag)
    with np.errstate(invalid="ignore"):
        equal: NDArray = (found == expected) | ((found != found) & (expected != expected))
    return equal


def _distances(found: NDArray, expected: NDArray) -> NDArray:
    """How many numbers of their type are between each two; infinity for others that are not equal."""
    if found.dtype.kind == "c":
        return np.maximum(_distances(found.real, expected.real), _distances(found.imag, expected.imag))
    signed = np.dtype(f"i{found.dtype.itemsize}")
    lowest = int(np.iinfo(signed).min)

    def order(array: NDArray) -> list[int]:
        bits = np.ascontiguousarray(array).reshape(-1).view(signed).tolist()
        return [lowest - each if each < 0 else each for each in bits]

    with np.errstate(invalid="ignore"):
        finite = (np.isfinite(found.astype(np.float64)) & np.isfinite(expected.astype(np.float64))).reshape(-1).tolist()
    same = _equal(found, expected).reshape(-1).tolist()
    distances = [
        abs(a - b) if is_finite else 0.0 if is_same else np.inf
        for a, b, is_finite, is_same in zip(order(found), order(expected), finite, same)
    ]
    return np.array(distances, np.float64).reshape(found.shape)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--backend", default="evaluator")
    parser.add_argument("--passed", action="store_true")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for path in options.paths:
        for file in sorted(path.rglob("*.mlir")) if path.is_dir() else [path]:
            for text in programs(file):
                for name, outcome in outcomes(text, str(file), options.backend):
                    kind = outcome.partition(":")[0]
                    counts[kind] += 1
                    if kind != "passed" or options.passed:
                        print(f"{file}: {name}: {outcome}")
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return 1 if set(counts) - {"passed"} else 0


def outcomes(text: str, file: str, backend: str) -> Iterator[tuple[str, str]]:
    """The functions of a program, and for each "passed", or why not."""
    try:
        program = Program(text, file, backend)
    except HloError as error:
        yield "?", f"not read: {error}"
        return
    for function in program.functions():
        name = str(function.attributes["sym_name"])
        try:
            failures = program.run(function)
        except UnsupportedError as error:
            yield name, f"not supported: {error}"
        except HloError as error:
            yield name, f"error: {type(error).__name__}: {error}"
        else:
            yield name, f"failed: {failures[0]}" if failures else "passed"


if __name__ == "__main__":
    sys.exit(main())
