"""One program of others in this process: its numbers and its CPU time. `run.py` starts this file, under JAX and hloom.

    python record.py PROGRAM.json RESULT.pickle          # under hloom: python -m hloom jax record.py ...

The program runs as `__main__`. Its numbers are what its namespace holds at the end (leaves of trees), and what it has
drawn with Matplotlib. The program's own clock counts its calls, so that times do not differ.
"""

from __future__ import annotations

import builtins
import json
import os
import pickle
import random
import re
import resource
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

LARGEST = 1 << 22
"""Elements of an array that are still compared."""


def text_of(path: Path) -> str:
    """The Python text of a script, of a notebook or of a MyST document."""
    text = path.read_text()
    if path.suffix == ".ipynb":
        cells = ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    elif path.suffix == ".md":
        cells = re.findall(r"^```(?:\{code-cell\}|python)[^\n]*\n(.*?)^```", text, re.M | re.S)
        cells = [re.sub(r"\A(---\n.*?---\n|(:[^\n]*\n)+)", "", cell, flags=re.S) for cell in cells]
    else:
        return text
    cells = [cell for cell in cells if not cell.lstrip().startswith("%%") or cell.lstrip().startswith("%%time")]
    lines = (line for cell in cells for line in [*cell.splitlines(), ""])
    return "\n".join(
        re.sub(r"^(\s*)[%!].*", r"\1pass", re.sub(r"^(\s*)%time(it)? +(?![- ])", r"\1", line)) for line in lines
    )


def shortened(text: str, changes: dict[str, str]) -> str:
    """The text with constants replaced: each pattern must be there."""
    for pattern, new in changes.items():
        text, count = re.subn(pattern, new, text, flags=re.M)
        if not count:
            raise SystemExit(f"record: the program has no {pattern!r}")
    return text


def own_clock() -> None:
    """Let the program's own calls of the clock count 1 ms each; those of libraries stay."""
    calls = iter(range(1 << 60))

    def counting(real: Callable[[], float], step: float) -> Callable[[], float]:
        return lambda: step * next(calls) if sys._getframe(1).f_globals.get("__name__") == "__main__" else real()

    for name in ("time", "perf_counter", "monotonic", "process_time"):
        setattr(time, name, counting(getattr(time, name), 1e-3))
        setattr(time, f"{name}_ns", counting(getattr(time, f"{name}_ns"), 1_000_000))


def figures() -> list[Any]:
    """The figures that are made from now on; none without Matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return []
    made: list[Any] = []
    init = Figure.__init__

    def remembering(self: Any, *args: Any, **kwargs: Any) -> None:
        made.append(self)
        init(self, *args, **kwargs)

    Figure.__init__ = remembering
    return made


def drawn(made: list[Any]) -> Iterator[tuple[str, Any]]:
    """What is in the figures: lines, images, and points."""
    for k, figure in enumerate(made):
        for j, axes in enumerate(figure.axes):
            for i, line in enumerate(axes.lines):
                yield f"figure {k}.{j} line {i}", line.get_ydata()
            for i, image in enumerate(axes.images):
                yield f"figure {k}.{j} image {i}", image.get_array()
            for i, points in enumerate(axes.collections):
                yield f"figure {k}.{j} points {i}", points.get_offsets()


def numbers(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The numeric leaves of a value, as arrays."""
    import jax

    if isinstance(value, (types.ModuleType, type, types.FunctionType)) or name.startswith("_"):
        return
    try:
        leaves = jax.tree_util.tree_leaves(value)
    except Exception:  # a type with an order that cannot be sorted, ...: not numbers
        return
    for k, leaf in enumerate(leaves[:2000]):
        try:
            if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
                leaf = jax.random.key_data(leaf)
            if not isinstance(leaf, (int, float, complex, np.generic, np.ndarray, jax.Array)):
                continue
            array = np.asarray(leaf)
            if array.dtype.kind == "V":
                array = array.astype(np.float32)
        except Exception:  # a deleted or donated array, a tracer that was kept
            continue
        if array.dtype.kind in "biufc" and array.size <= LARGEST:
            yield f"{name}[{k}]", array


def main() -> None:
    program = json.loads(Path(sys.argv[1]).read_text())
    path = Path(program["path"]).resolve()
    resource.setrlimit(resource.RLIMIT_CPU, (int(program["limit"]), int(program["limit"]) + 5))
    result: dict[str, Any] = {"error": None}
    os.chdir(program.get("folder") or path.parent)
    sys.argv = [str(path), *program.get("arguments", [])]
    sys.path[:1] = [str(path.parent), *program.get("search", [])]
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=str(path), __builtins__=builtins, display=lambda *_, **__: None)
    sys.modules["__main__"] = module
    out = sys.stdout
    made = figures()
    text = shortened(text_of(path), program.get("changes", {}))
    own_clock()
    import jax  # noqa: F401 - JAX's import takes from NumPy's random numbers

    random.seed(0)
    np.random.seed(0)
    begin = time.monotonic()
    before = os.times()
    try:
        import linecache

        linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))
        exec(compile(text, str(path), "exec"), module.__dict__)
    except SystemExit as stop:
        if stop.code not in (None, 0):
            result["error"] = f"SystemExit: {stop.code}"
    except BaseException as error:
        traceback.print_exc()
        result["error"] = f"{type(error).__name__}: {error}"[:600]
    values = dict(drawn(made))
    for name, value in list(module.__dict__.items()):
        values.update(numbers(name, value))
    after = os.times()
    result["cpu"] = sum(after[:4]) - sum(before[:4])
    result["total_cpu"] = sum(after[:4])
    result["wall"] = time.monotonic() - begin
    result["values"] = {k: np.asarray(v) for k, v in values.items()}
    out.flush()
    Path(program["result"]).write_bytes(pickle.dumps(result))
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
