#!/usr/bin/env python3
"""Programs of others under JAX and under hloom: do they run, with which numbers, in which time.

    python tools/programs/run.py CHECKOUTS --out results.jsonl                # all of programs.toml
    python tools/programs/run.py CHECKOUTS --out results.jsonl --match 'tinygp|optax' --python ZOO/bin/python
    python tools/programs/run.py --table results.jsonl                        # the table for docs/jax_programs.md

CHECKOUTS has a git checkout OWNER/NAME of each repository; the results and the table name their commits. `--python`
has JAX and the libraries; hloom is this checkout's. A program runs in processes of its own: once under JAX, then under
hloom from an empty store, and again from the filled one. Times are CPU seconds, of the whole process. A program that
JAX itself does not run is not counted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pickle
import re
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
EQUAL = 2e-3
"""Differences up to here, relative to the largest number of an array, are rounding."""
OTHER_ROUNDING = {"XLA_FLAGS": "--xla_cpu_max_isa=AVX"}  # without fused multiply-add
NUMBER = re.compile(r"(?<![a-zA-Z_.])[-+]?(?:\d+\.\d*(?:e[-+]?\d+)?|\d+(?:e[-+]?\d+)|nan|inf)(?=j?\b)", re.I)
TIMES = re.compile(r"it/s|s/it|second|\btime\b|\d ?m?s\b|warmup|sample:|0x[0-9a-f]{6}|elapsed", re.I)
"""Lines of output that tell times."""


def programs() -> list[dict[str, Any]]:
    """The list of programs."""
    return [
        {
            "repository": repository,
            "name": _name(repository, program["path"]),
            "search": [],
            **{key: value for key, value in group.items() if key != "program"},
            **program,
            "changes": group.get("changes", {}) | program.get("changes", {}),
        }
        for repository, group in tomllib.loads((HERE / "programs.toml").read_text()).items()
        for program in group["program"]
    ]


def _name(repository: str, path: str) -> str:
    file = Path(path)
    stem = file.parent.name if file.stem in ("example", "main") else file.stem
    return f"{repository.partition('/')[2]}.{stem}"


def execute(
    program: dict[str, Any], command: list[str], env: dict[str, str], limit: float, keep: Path
) -> dict[str, Any]:
    """One process; its result with the key `output`."""
    keep.mkdir(parents=True, exist_ok=True)
    order, result = keep / "program.json", keep / "result.pickle"
    result.unlink(missing_ok=True)
    order.write_text(json.dumps({**program, "result": str(result), "limit": limit}))
    with (keep / "stdout").open("w") as out, (keep / "stderr").open("w") as err:
        begin = time.perf_counter()
        child = subprocess.Popen([*command, str(HERE / "record.py"), str(order)], stdout=out, stderr=err, env=env,
                                 start_new_session=True)  # fmt: skip
        try:
            child.wait(10 * limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            child.wait()
    if child.returncode in (-9, -24):
        return {"error": f"longer than {limit:.0f} s", "values": {}, "output": "", "cpu": limit}
    output = (keep / "stdout").read_text(errors="replace")
    if not result.exists():
        last = (keep / "stderr").read_text(errors="replace").strip().splitlines()[-1:]
        return {"error": f"ended with {child.returncode}: {' '.join(last)[:300]}", "values": {}, "output": output}
    found: dict[str, Any] = pickle.loads(result.read_bytes())
    return {**found, "cpu": found["total_cpu"], "wall": time.perf_counter() - begin, "output": output}


def difference(wanted: np.ndarray, got: np.ndarray, scale: float = 1e-6) -> float:
    """The largest difference, relative to the largest number or to scale; infinite for other shapes."""
    if wanted.shape != got.shape:
        return math.inf
    if wanted.size == 0 or wanted.dtype.kind not in "biufc" or got.dtype.kind not in "biufc":
        return 0.0
    a, b = (x.astype(np.complex128 if wanted.dtype.kind == "c" else np.float64) for x in (wanted, got))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a)
    if (finite != np.isfinite(b)).any() or not same[~finite].all():
        return math.inf
    return float(np.abs(a[finite] - b[finite]).max() / max(np.abs(a[finite]).max(), scale)) if finite.any() else 0.0


def printed(output: str) -> list[float]:
    """The numbers with a fraction of a program's output."""
    lines = (line for line in output.splitlines() if not TIMES.search(line))
    return [float(x) for line in lines for x in NUMBER.findall(line)]


def differences(program: dict[str, Any], wanted: dict[str, Any], got: dict[str, Any]) -> dict[str, float]:
    """How the numbers differ, by name; printed ones together."""
    ignored = re.compile(program.get("ignore", r"(?!)"))
    scales: dict[str, float] = {}  # a list of numbers is like an array
    for name, value in wanted["values"].items():
        if value.shape == () and np.isfinite(value):
            variable = name.partition("[")[0]
            scales[variable] = max(scales.get(variable, 1e-6), float(abs(value)))

    def scale(name: str, value: np.ndarray) -> float:
        return scales.get(name.partition("[")[0], 1e-6) if value.shape == () else 1e-6

    found = {
        name: difference(value, got["values"][name], scale(name, value)) if name in got["values"] else math.inf
        for name, value in wanted["values"].items()
        if not ignored.match(name)
    }
    if not ignored.match("printed"):
        a, b = printed(wanted["output"]), printed(got["output"])
        pairs = (difference(np.asarray(x), np.asarray(y)) for x, y in zip(a, b, strict=False))
        found["printed"] = math.inf if len(a) != len(b) else max(pairs, default=0.0)
    return found


def beyond(found: dict[str, float], own: dict[str, float], equal: float = EQUAL) -> list[tuple[str, float]]:
    """Differences that are not rounding: larger than equal, and than what rounding makes of JAX's own numbers."""
    most = max(own.values(), default=0.0)
    bound = {name: max(10 * own.get(name, 0.0), most / 10) for name in found}
    return sorted(((n, d) for n, d in found.items() if d > max(equal, bound[n])), key=lambda item: -item[1])


def commit_of(folder: Path) -> str:
    """The commit that a checkout is of, "+" behind it if files were changed since; "" if it is none."""
    if not (folder / ".git").exists():
        return ""
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def run(program: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """The line of a program."""
    root = Path(options.checkouts).resolve() / program["repository"]
    line: dict[str, Any] = {
        "name": program["name"],
        "repository": program["repository"],
        "file": program["path"],
        "commit": commit_of(root),
        "hloom": commit_of(HERE.parents[1]),
    }
    program = {**program, "path": str(root / program["path"]), "search": [str(root / s) for s in program["search"]]}
    keep = Path(options.keep).resolve() / program["name"]
    env = {
        **os.environ,
        "MPLBACKEND": "Agg",
        "TQDM_DISABLE": "1",
        "JAX_PLATFORMS": "cpu",
        "PYTHONWARNINGS": "ignore",
        "PYTHONHASHSEED": "0",
    }
    env |= program.get("environment", {})
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    limit, jax_env = options.limit, dict(env)
    jax = keep / "jax"
    if options.again or not (jax / "line.pickle").exists():
        wanted = execute(program, [options.python], env, limit, jax)
        (jax / "line.pickle").write_bytes(pickle.dumps(wanted))
    wanted = pickle.loads((jax / "line.pickle").read_bytes())
    if wanted["error"]:
        return {**line, "status": "not with JAX", "error": wanted["error"]}
    env["PYTHONPATH"] = str(HERE.parents[1])
    command = [options.python, "-m", "hloom", "jax"]
    with tempfile.TemporaryDirectory() as store:
        env["HLOOM_CACHE_DIR"] = store
        cold = execute(program, command, env, max(limit, 3 * wanted["cpu"]), keep / "cold")
        warm = execute(program, command, env, limit, keep / "warm") if not (cold["error"] or options.cold) else None
    line |= {"jax": wanted["cpu"], "jax_wall": wanted["wall"], "cold": cold.get("cpu"), "cold_wall": cold.get("wall")}
    if cold["error"]:
        return {**line, "status": "stops", "error": cold["error"]}
    found = differences(program, wanted, cold)
    equal = program.get("tolerance", EQUAL)
    other = beyond(found, {}, equal)
    if other:  # chaotic programs: how far do JAX's own numbers move with the rounding of another instruction set?
        if options.again or not (keep / "other" / "line.pickle").exists():
            own = execute(program, [options.python], {**jax_env, **OTHER_ROUNDING}, 3 * limit, keep / "other")
            (keep / "other" / "line.pickle").write_bytes(pickle.dumps(own))
        own = pickle.loads((keep / "other" / "line.pickle").read_bytes())
        line |= {
            "chaotic": dict(other[:4]),
            "own": {n: d for n, d in differences(program, wanted, own).items() if d > EQUAL},
        }
        other = beyond(found, line["own"], equal)
        line["own"] = dict(list(line["own"].items())[:4])
    line |= {"compared": len(found), "worst": other[:4], "equal": not other}
    if warm is not None:
        line |= {"warm": warm.get("cpu"), "warm_wall": warm.get("wall")}
        if warm["error"] or beyond(differences(program, cold, warm), {}, equal):
            line |= {"equal": False, "error": f"the second run: {warm['error'] or 'other numbers than the first'}"}
    return {**line, "status": "runs" if line["equal"] else "differs"}


def latest(path: str) -> list[dict[str, Any]]:
    """The last line of each program."""
    lines = (json.loads(line) for line in Path(path).read_text().splitlines())
    return list({line["name"]: line for line in lines}.values())


def table(path: str) -> str:
    """The results as Markdown."""
    lines = [line for line in latest(path) if line["status"] != "not with JAX"]
    text = ["| program | numbers | JAX, s | cold | warm |", "|---|---|---|---|---|"]
    for line in sorted(lines, key=lambda line: (line["repository"].lower(), line["file"])):
        ratios = [f"{line[k] / line['jax']:.2f}" if line.get(k) else "" for k in ("cold", "warm")]
        state = {"runs": "equal", "differs": "other", "stops": "stops"}[line["status"]]
        if line["status"] == "runs" and line.get("chaotic"):
            state = "rounding"
        text.append(f"| {line['repository']}: {line['file']} | {state} | {line['jax']:.1f} | {' | '.join(ratios)} |")
    means = [statistics.geometric_mean(x[k] / x["jax"] for x in lines if x.get(k)) for k in ("cold", "warm")]
    count = sum(line["status"] == "runs" for line in lines)
    for what, of in (("repositories", "commit"), ("hloom", "hloom")):
        known = sorted({f"{x['repository']} {x[of]}" if what != of else x[of] for x in lines if x.get(of)})
        if known:
            text.append(f"\nCommits of {what}: {', '.join(known)}.")
    text.append(f"\n{len(lines)} programs, {count} of them with JAX's numbers. Geometric means of the times: "
                f"{means[0]:.2f} cold, {means[1]:.2f} warm.")  # fmt: skip
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", nargs="?")
    parser.add_argument("--out", default="programs.jsonl")
    parser.add_argument("--match", default="", help="regular expression of names and repositories")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has JAX and the libraries")
    parser.add_argument(
        "--keep",
        default=str(Path(tempfile.gettempdir()) / "programs_of_others"),
        help="outputs; JAX's results are reused",
    )
    parser.add_argument("--again", action="store_true", help="run JAX again too")
    parser.add_argument("--cold", action="store_true", help="no second run")
    parser.add_argument("--new", action="store_true", help="only programs that have no line yet")
    parser.add_argument("--limit", type=float, default=100, help="CPU seconds of a process")
    parser.add_argument("--table", metavar="RESULTS", help="print the table of results, run nothing")
    options = parser.parse_args()
    if options.table:
        print(table(options.table))
        return
    known = {line["name"] for line in latest(options.out)} if options.new and Path(options.out).exists() else set()
    for program in programs():
        if not re.search(options.match, f"{program['name']} {program['repository']}") or program["name"] in known:
            continue
        line = run(program, options)
        with Path(options.out).open("a") as out:
            out.write(json.dumps(line) + "\n")
        ratio = [f"{line[k] / line['jax']:.2f}" for k in ("cold", "warm") if line.get(k) and line.get("jax")]
        why = "" if line["status"] == "runs" else str(line.get("error") or line["worst"])[:300]
        print(
            f"{line['status']:12} {line['name']:40} {line.get('jax', 0):6.1f} s  {' '.join(ratio):12} {why}", flush=True
        )


if __name__ == "__main__":
    main()
