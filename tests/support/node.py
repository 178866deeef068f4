"""Modules of WebAssembly, and the modules of the viewer's page, run by Node.js, for tests."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
NDArray = np.ndarray[Any, Any]
VIEWER_PAGE = Path(__file__).resolve().parents[2] / "hloom" / "viewer" / "page"
PURE_MODULES = ("model", "provenance", "diff", "outline", "graph_model", "memory_model", "searching", "link", "format")

_RUN = """
const fs = require("fs");
const answers = JSON.parse(fs.readFileSync(0)).map(({ code, inputs, sizes }) => {
  const { memory, run, args, results } =
    new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(code, "base64"))).exports;
  const table = (global, count) => Array.from(new Uint32Array(memory.buffer, global.value, count));
  table(args, inputs.length).forEach((place, k) =>
    new Uint8Array(memory.buffer, place).set(Buffer.from(inputs[k], "base64")));
  const statuses = [run(), run()];  // the second run finds what the first left in its memory
  return { statuses, results: table(results, sizes.length).map((place, k) =>
    Buffer.from(memory.buffer, place, sizes[k]).toString("base64")) };
});
console.log(JSON.stringify(answers));
"""
_CALL = """
const fs = require("fs");
const { code, name, rows } = JSON.parse(fs.readFileSync(0));
const f = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(code, "base64"))).exports[name];
const numbers = (row) => row.map((x) => (typeof x === "string" ? Number(x) : x));
const text = (y) => (Object.is(y, -0) ? "-0" : String(y));
console.log(JSON.stringify(rows.map((row) => text(f(...numbers(row))))));
"""


def _node(script: str, given: Any) -> Any:
    run = subprocess.run(["node", "-e", script], input=json.dumps(given), capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def run_modules(programs: Sequence[tuple[bytes, Sequence[NDArray], Sequence[int]]]) -> list[list[bytes]]:
    """The bytes of the results of modules that export run, args and results: (code, inputs, sizes of results)."""
    given = [
        {
            "code": base64.b64encode(code).decode(),
            "inputs": [base64.b64encode(np.ascontiguousarray(x).tobytes()).decode() for x in inputs],
            "sizes": list(sizes),
        }
        for code, inputs, sizes in programs
    ]
    answers = _node(_RUN, given)
    assert all(answer["statuses"] == [0, 0] for answer in answers)
    return [[base64.b64decode(text) for text in answer["results"]] for answer in answers]


def call(code: bytes, name: str, rows: Sequence[Sequence[float]]) -> list[float]:
    """The results of an exported function of numbers for each row of arguments."""
    text = [[x if np.isfinite(x) and x != 0 else _special(x) for x in row] for row in rows]
    given = {"code": base64.b64encode(code).decode(), "name": name, "rows": text}
    return [float(x.replace("Infinity", "inf")) for x in _node(_CALL, given)]


def _special(x: float) -> str:
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity", "0.0": "0", "-0.0": "-0"}[repr(float(x))]


def run_page_modules(folder: Path, body: str, given: Any) -> Any:
    """The result of JavaScript with the names of the viewer's pure modules; `given` is a variable of it.

    folder: an empty one; the modules are put there as ES modules, whatever Node.js makes of the ending.
    """
    (folder / "package.json").write_text('{"type": "module"}')
    imports = []
    for path in sorted(VIEWER_PAGE.glob("*.js")):
        (folder / path.name).write_text(path.read_text())
        if path.stem in PURE_MODULES:
            imports.append(f'import * as {path.stem} from "./{path.name}";')
    names = ", ".join(PURE_MODULES)
    program = (
        f'import {{ readFileSync }} from "node:fs";\n{chr(10).join(imports)}\n'
        "const given = JSON.parse(readFileSync(0));\n"
        f"const run = ({{ {names} }}) => {{ {body} }};\nconsole.log(JSON.stringify(run({{ {names} }}) ?? null));\n"
    )
    (folder / "test.js").write_text(program)
    command = ["node", str(folder / "test.js")]
    run = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
