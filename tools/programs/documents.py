#!/usr/bin/env python3
"""The cells of JAX's documents under JAX and under hloom: how many run.

    python tools/programs/documents.py CHECKOUT --out cells.jsonl --with jax      # a git checkout of JAX
    python tools/programs/documents.py CHECKOUT --out cells.jsonl --with hloom
    python tools/programs/documents.py --report cells.jsonl

A document is a notebook, or Markdown with `{code-cell}`; of a document in several formats one counts. Each runs in a
process of its own, cell by cell in one namespace, and a cell that fails does not stop the others. A cell that its
document marks with `raises-exception` runs if it raises. The report counts the cells that run with JAX.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]
_BLOCK = re.compile(r"^```+\s*\{code-cell\}[^\n]*\n(.*?)^```+\s*$", re.M | re.S)
_OPTIONS = re.compile(r"\A(?:---\n.*?---\n|(?::[^\n]*\n)+)", re.S)


def cells_of(path: Path) -> list[tuple[str, bool]]:
    """(text, whether it is to raise) of each code cell."""
    if path.suffix == ".ipynb":
        cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
        return [("".join(c["source"]), "raises-exception" in c.get("metadata", {}).get("tags", ())) for c in cells]
    found = []
    for block in _BLOCK.findall(path.read_text()):
        options = _OPTIONS.match(block)
        head = options.group() if options else ""
        found.append((block[len(head) :], "raises-exception" in head))
    return found


def documents(checkout: Path) -> list[Path]:
    """The documents with cells; a notebook that is there as Markdown, too, is left out."""
    folder = checkout / "docs"
    every = sorted(p for kind in ("*.md", "*.ipynb") for p in folder.rglob(kind) if "_build" not in p.parts)
    return [p for p in every if (p.suffix == ".md" or not p.with_suffix(".md").exists()) and cells_of(p)]


def plain(text: str) -> str:
    """A cell without IPython's own syntax."""
    if text.lstrip().startswith("%%") and not text.lstrip().startswith("%%time"):
        return ""
    lines = [re.sub(r"^(\s*)%time(?:it)? +(?![- ])", r"\1", line) for line in text.splitlines()]
    return "\n".join([re.sub(r"^(\s*)[%!].*", r"\1pass", line) for line in lines])


def run_cell(text: str, names: dict[str, Any], name: str) -> None:
    """Run a cell as a notebook does: the value of its last expression is shown."""
    tree = ast.parse(plain(text), name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), name, "eval"), names)
        if value is not None:
            print(repr(value))


def run_document(path: Path, out: Path, limit: int) -> None:
    """Run the cells of a document in this process, and add a line for each one to `out`."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"longer than {limit} s")

    os.chdir(path.parent)
    sys.path.insert(0, str(path.parent))
    names: dict[str, Any] = {"__name__": "__main__", "display": lambda *_, **__: None}
    signal.signal(signal.SIGALRM, stop)
    with out.open("a") as lines:
        for number, (text, raises) in enumerate(cells_of(path)):
            error = None
            signal.alarm(limit)
            try:
                run_cell(text, names, f"<cell {number}>")
            except BaseException as found:
                error = f"{type(found).__name__}: {found}"
            signal.alarm(0)
            runs = (error is not None) if raises else error is None
            shown = "" if runs else (error or "did not raise")[:600]
            lines.write(json.dumps({"cell": number, "runs": runs, "error": shown}) + "\n")
            lines.flush()


def run_all(options: argparse.Namespace) -> None:
    """Run all documents, and write their cells to the file `--out`."""
    checkout = Path(options.checkout).resolve()
    own = {"MPLBACKEND": "Agg", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    env = {**os.environ, **own}
    command = [options.python, *(["-m", "hloom", "jax"] if options.library == "hloom" else []), str(HERE)]
    done = {c["document"] for c in _lines(options.out) if c["with"] == options.library} if options.new else set()
    for path in documents(checkout):
        name = str(path.relative_to(checkout / "docs"))
        if not re.search(options.match, name) or name in done:
            continue
        part = Path(f"{options.out}.{options.library}.part").resolve()
        part.unlink(missing_ok=True)
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [*command, "--one", str(path), "--out", str(part), "--limit", str(options.limit)],
                env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20 * options.limit, check=False,
            )  # fmt: skip
        found = {c["cell"]: c for c in (_lines(str(part)) if part.exists() else [])}
        ended = {"runs": False, "error": "the process ended"}
        with Path(options.out).open("a") as out:
            for number in range(len(cells_of(path))):
                line = {"document": name, "with": options.library, **found.get(number, ended), "cell": number}
                out.write(json.dumps(line) + "\n")
        count = sum(c["runs"] for c in found.values())
        print(f"{options.library:6} {name:60} {count} of {len(cells_of(path))}", flush=True)


def _lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()] if Path(path).exists() else []


def report(path: str) -> str:
    """The counts, and the cells that run with JAX alone."""
    state = {(c["with"], c["document"], c["cell"]): c for c in _lines(path)}
    of_jax = [key[1:] for key, c in state.items() if key[0] == "jax" and c["runs"] and ("hloom", *key[1:]) in state]
    failed = [(key, state["hloom", *key]["error"]) for key in of_jax if not state["hloom", *key]["runs"]]
    by_document = Counter(document for (document, _), _ in failed)
    number = len({document for document, _ in of_jax})
    text = [f"{number} documents; {len(of_jax)} cells run with JAX, {len(of_jax) - len(failed)} of them here"]
    text += [f"{count:4} {document}" for document, count in by_document.most_common()]
    text += [f"{document} [{cell}]: {error}" for (document, cell), error in failed]
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", nargs="?")
    parser.add_argument("--out", default="cells.jsonl")
    parser.add_argument("--with", dest="library", choices=("jax", "hloom"), default="hloom")
    parser.add_argument("--match", default="", help="regular expression of documents")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has JAX")
    parser.add_argument("--limit", type=int, default=60, help="seconds of a cell")
    parser.add_argument("--new", action="store_true", help="only documents that have no line yet")
    parser.add_argument("--one", metavar="DOCUMENT", help="run one document in this process")
    parser.add_argument("--report", metavar="FILE", help="print the counts, run nothing")
    options = parser.parse_args()
    if options.report:
        print(report(options.report))
    elif options.one:
        run_document(Path(options.one), Path(options.out), options.limit)
    else:
        run_all(options)


if __name__ == "__main__":
    main()
