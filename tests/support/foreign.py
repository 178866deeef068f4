"""Compiled programs on other machines: linked with a C program that feeds them, and run by an emulator."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hloom.aot

NDArray = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Foreign:
    """A machine: its triple, the C compiler for it, and the emulator; none for this machine itself."""

    triple: str
    compiler: str
    emulator: str | None = None
    has_float16: bool = True
    """True if its C compiler, of GCC 12, knows _Float16."""

    @property
    def missing(self) -> str:
        """The tools that are not installed, or an empty text."""
        return ", ".join(tool for tool in (self.compiler, self.emulator) if tool and shutil.which(tool) is None)


_PRELUDE = """\
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *memory(size_t bytes) { return aligned_alloc(64, (bytes + 127) / 64 * 64); }

"""


def _main(programs: Sequence[hloom.aot.AotProgram]) -> str:
    """A C program that reads all arguments, runs all programs, and writes all results."""
    lines = []
    for p in programs:
        kinds = "const void *const *, void *const *, void *, const void *"
        lines.append(f"int32_t {p.name}_run({kinds});")
    lines.append("int main(void) {")
    for p in programs:
        lines.append(f"  {{ void *arguments[{len(p.arguments) + 1}], *results[{len(p.results) + 1}];")
        for k, slot in enumerate(p.arguments):
            size = slot.shape.byte_size
            lines.append(f"    arguments[{k}] = memory({size});")
            lines.append(f"    if (fread(arguments[{k}], 1, {size}, stdin) != {size}) return 3;")
        lines += [f"    results[{k}] = memory({slot.shape.byte_size});" for k, slot in enumerate(p.results)]
        lines.append(f"    void *temporary = memory({p.temporary_bytes});")
        lines.append(f"    if ({p.name}_run((const void *const *)arguments, results, temporary, NULL)) return 4;")
        lines += [f"    fwrite(results[{k}], 1, {s.shape.byte_size}, stdout);" for k, s in enumerate(p.results)]
        lines.append("  }")
    return _PRELUDE + "\n".join([*lines, "  return 0;", "}", ""])


def results_on(
    machine: Foreign,
    programs: Sequence[hloom.aot.AotProgram],
    inputs: Sequence[Sequence[NDArray]],
    form: str,
    folder: Path,
) -> list[list[NDArray]]:
    """The results of programs on a machine, linked from object code or from C (`form`)."""
    folder.mkdir(exist_ok=True)
    (folder / "main.c").write_text(_main(programs))
    for p in programs:
        if form == "object":
            (folder / f"{p.name}.o").write_bytes(p.object_code)
        else:
            (folder / f"{p.name}.c").write_text(p.c_source)
    files = [f"{p.name}.{'o' if form == 'object' else 'c'}" for p in programs]
    flags = ["-std=gnu11", "-O2", "-ffp-contract=off", "-fwrapv", "-w", "-static"]
    command = [machine.compiler, *flags, "-o", "all", "main.c", *files, "-lm"]
    build = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert build.returncode == 0, build.stderr
    given = b"".join(np.ascontiguousarray(x).tobytes() for program in inputs for x in program)
    start = [machine.emulator] if machine.emulator else []
    run = subprocess.run([*start, "./all"], cwd=folder, input=given, capture_output=True)
    assert run.returncode == 0, (run.returncode, run.stderr)
    found, place = [], 0
    for p in programs:
        arrays = []
        for slot in p.results:
            data = run.stdout[place : place + slot.shape.byte_size]
            arrays.append(np.frombuffer(data, slot.shape.element.dtype).reshape(slot.shape.dimensions))
            place += slot.shape.byte_size
        found.append(arrays)
    assert place == len(run.stdout)
    return found
