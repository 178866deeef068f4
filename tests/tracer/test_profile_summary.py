"""Where time went: the accounts of a thread, the sums of rows, and `hloom profile`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hloom.hlo.timeline.accounting import account
from hloom.hlo.timeline.spans import Kind, Span, Track
from hloom.hlo.timeline.summary import MachineSpeed, summarize
from hloom.hlo.timeline.timeline import Timeline
from hloom.numba_backend import machine_speed
from hloom.numba_backend.timeline import Work
from hloom.tracer.profiling.timeline import ProfileOptions, Session

import hloom
import hloom.numpy as jnp
from hloom.command_line import main
from support.trace_events import on_track, read_trace

SPEED = MachineSpeed(10e9, {"f32": 100e9, "f64": 50e9}, 2)


def span(track: Track, start: int, end: int, kind: Kind = Kind.PLAIN, thread: int = 1, subject: Any = None) -> Span:
    return Span(track, f"{track.value} {start}", start, end, thread, {}, kind, subject)


ACCOUNTS = {
    "nothing": ([], {"Python": 100}),
    "a call, a program, two kernels": (
        [
            span(Track.PYTHON, 10, 90, Kind.CALL), span(Track.PROGRAMS, 20, 80), span(Track.KERNELS, 25, 45),
            span(Track.KERNELS, 45, 70),
        ],
        {"Python": 20, "dispatch": 35, "kernels and products": 45},
    ),
    "a jit that compiles": (
        [
            span(Track.PYTHON, 0, 100, Kind.CALL), span(Track.TRACING, 5, 25), span(Track.TRACING, 10, 20),
            span(Track.COMPILING, 30, 90, Kind.EVENT), span(Track.PASSES, 35, 50), span(Track.COMPILING, 60, 70),
        ],
        {"dispatch": 20, "tracing": 20, "passes": 15, "compiling": 45},
    ),
    "waits inside of kernels": (
        [span(Track.KERNELS, 0, 50), span(Track.WAITS, 40, 50), span(Track.LIBRARIES, 50, 60)],
        {"kernels and products": 40, "waits": 10, "libraries and callbacks": 10, "Python": 40},
    ),
    "what says nothing": (
        [
            span(Track.STEPS, 0, 100, Kind.ANNOTATION), span(Track.PYTHON, 0, 100, Kind.ANNOTATION),
            span(Track.KERNELS, 10, 20, Kind.PIECE), span(Track.KERNELS, 0, 100, thread=2),
        ],
        {"Python": 100},
    ),
    "an end that is too late": ([span(Track.COPIES, 0, 10), span(Track.COPIES, 5, 15)], {
        "transfers and copies": 10, "Python": 90,
    }),
}  # fmt: skip


@pytest.mark.parametrize("case", ACCOUNTS)
def test_each_nanosecond_counts_once(case: str) -> None:
    spans, expected = ACCOUNTS[case]
    found = account(Timeline(0, 100, sorted(spans, key=lambda s: (s.start, -s.end))), 1)
    assert {name: spent for name, spent in found.items() if spent} == expected
    assert sum(found.values()) == 100


def work(
    name: str, track: Track = Track.KERNELS, nbytes: int | None = None, flops: int | None = None,
    source: str = "/home/me/a/b.py:3",
) -> Work:  # fmt: skip
    return Work("p", name, "kernel", name, "fusion", track, {}, nbytes, flops, source, "f32")


def test_rows_are_summed_and_compared_with_the_machine() -> None:
    heavy, light, unknown = work("heavy", nbytes=1000, flops=40_000), work("light", nbytes=2000), work("unknown")
    spans = [
        *(span(Track.KERNELS, 1000 * k, 1000 * k + 800, subject=heavy) for k in range(4)),
        span(Track.KERNELS, 5000, 5400, subject=light), span(Track.KERNELS, 6000, 6100, subject=unknown),
        span(Track.KERNELS, 0, 400, Kind.PIECE), span(Track.PROGRAMS, 0, 7000, subject=work("p", Track.PROGRAMS)),
        span(Track.PYTHON, 0, 7000, Kind.CALL),
    ]  # fmt: skip
    timeline = Timeline(0, 10_000, spans, sums=[(light, 6, 600)])
    summary = summarize(timeline, 1, SPEED)
    assert [(line.name, line.calls, line.nanoseconds) for line in summary.lines] == [
        ("heavy", 4, 3200), ("light", 7, 1000), ("unknown", 1, 100),
    ]  # fmt: skip
    first, second, third = summary.to_json()["rows"]
    assert (first["bytes"], first["flops"], first["share"]) == (4000, 160_000, pytest.approx(0.32))
    assert first["share_of_bandwidth"] == pytest.approx(4000 / 3200 * 1e9 / 10e9)
    assert first["share_of_peak"] == pytest.approx(160_000 / 3200 * 1e9 / 100e9)
    assert second["bytes"] == 14_000 and third["bytes"] is None and "share_of_peak" not in third
    text = summary.to_text(top=1)
    assert "heavy" in text and "light" not in text and "(2 more)" in text and "b.py:3" in text
    assert "50%" in text, "of the peak"
    assert summary.calls == {"step": [], "jitted function": [("Python 0", 1, 7000)], "Python function": []}
    json.dumps(summary.to_json())


@pytest.mark.parametrize("source", ["/home/me/a/b.py:3", "C:\\Users\\me\\a\\b.py:3", "a/b.py:3"])
def test_rows_have_short_names_of_files(source: str) -> None:
    spans = [span(Track.KERNELS, 0, 10, subject=work("f", source=source))]
    summary = summarize(Timeline(0, 100, spans), 1)
    assert summary.table().rows[0][-1] == "a/b.py:3" and summary.lines[0].source == source


def test_names_do_nothing_to_a_terminal() -> None:
    spans = [
        span(Track.KERNELS, 0, 10, subject=work("\x1b[2J\x07")),
        Span(Track.STEPS, "a\x1b]0;title\x07", 0, 10, 1, {}, Kind.ANNOTATION),
    ]  # fmt: skip
    text = summarize(Timeline(0, 100, spans), 1).to_text()
    assert "\x1b" not in text and "\x07" not in text and r"\033[2J\007" in text


@pytest.mark.parametrize(("m", "k", "n"), [(30, 400, 50), (20, 30, 25)])
def test_a_program_of_known_size(m: int, k: int, n: int) -> None:
    """A product has its sizes as its name, whether BLAS computes it or a kernel."""
    f = hloom.jit(lambda x, y: jnp.exp(x @ y))
    x, y = jnp.ones((m, k)), jnp.ones((k, n))
    f(x, y)
    session = Session(ProfileOptions())
    session.start()
    for _ in range(5):
        f(x, y)
    summary = summarize(session.stop(), os.getpid(), SPEED)
    by_flops = {line.flops: line for line in summary.lines}
    product, exponential = by_flops[5 * 2 * m * k * n], by_flops[5 * m * n]
    assert product.calls == exponential.calls == 5 and product.name == f"f32[{m}x{k}] @ [{k}x{n}]"
    assert exponential.bytes == 5 * 2 * 4 * m * n
    line = test_a_program_of_known_size.__code__.co_firstlineno + 3
    assert product.source == exponential.source == f"{__file__}:{line}"
    assert sum(summary.accounts.values()) == pytest.approx(summary.seconds)
    assert [(name, n) for name, n, _ in summary.calls["jitted function"]] == [("<lambda>", 5)]


def test_the_machines_speed_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sizes: the test is about the way to the store."""
    monkeypatch.setattr(machine_speed, "_ELEMENTS", 1 << 16)
    monkeypatch.setattr(machine_speed, "_ROWS", 32)
    monkeypatch.setattr(machine_speed, "_SECONDS", 0.0)
    measured: list[int] = []
    measure = machine_speed._measure
    monkeypatch.setattr(machine_speed, "_measure", lambda threads: measured.append(threads) or measure(threads))
    kept: dict[str, bytes] = {}

    class Store:
        def data(self, key: str, end: str) -> bytes | None:
            return kept.get(key)

        def keep(self, key: str, end: str, data: bytes) -> None:
            kept[key] = data

    monkeypatch.setattr(machine_speed, "default_store", Store)
    first = machine_speed.machine_speed()
    assert machine_speed.machine_speed() == first and len(measured) == 1
    assert first.bytes_per_second > 0 and set(first.flops_per_second) == {"f32", "f64"}
    machine_speed.machine_speed(measure_again=True)
    assert len(measured) == 2
    for broken in (b"", b"[]", b"{}", b'{"bytes_per_second": -1, "f32": 1, "f64": 1}', b'{"bytes_per_second": "NaN"}'):
        kept.update(dict.fromkeys(kept, broken))
        machine_speed.machine_speed()
    assert len(measured) == 7


SCRIPT = """
import sys
import hloom, hloom.numpy as jnp
@hloom.jit
def step(x):
    return jnp.tanh(x @ x)
x = jnp.ones((300, 300))
for k in range(4):
    with hloom.profiler.StepTraceAnnotation("train", step_num=k):
        x = step(x)
print("done", *sys.argv[1:], __name__)
if "exit" in sys.argv:
    sys.exit(7)
"""


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., subprocess.CompletedProcess[str]]:
    (tmp_path / "script.py").write_text(SCRIPT)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hloom", "profile", *arguments]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path])}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    return run


def test_a_script_is_profiled(profile: Callable[..., Any], tmp_path: Path) -> None:
    ran = profile("--timeline", "out.json", "--top", "4", "script.py", "--top", "5")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("done --top 5 __main__\n")
    for what in ("main thread", "kernels and products", "f32[300x300] @ [300x300]", "script.py:6", "GFLOP/s", "train"):
        assert what in ran.stdout, what
    document = read_trace(tmp_path / "out.json")
    assert len(on_track(document, "Steps")) == 4
    ran = profile("--json", "--python", "-m", "script", "exit")
    assert ran.returncode == 7 and "done exit __main__" in ran.stderr
    found = json.loads(ran.stdout)
    assert [s["calls"] for s in found["steps"]] == [4] and found["jitted_functions"][0]["name"] == "step"
    assert "step" in [f["name"] for f in found["Python_functions"]], "it was called once, by the tracer"
    (product,) = [row for row in found["rows"] if "@" in row["name"]]
    assert product["calls"] == 4 and product["flops"] == 4 * 2 * 300**3 and product["source"].endswith("script.py:6")
    assert found["machine"]["bytes_per_second"] > 0 and sum(found["main_thread"].values()) == pytest.approx(
        found["seconds"]
    )
    ran = profile("-c", "raise ValueError('as asked')")
    assert ran.returncode == 1 and "main thread" in ran.stdout
    assert "ValueError: as asked" in ran.stderr and "command_line" not in ran.stderr


BAD = {
    (): "name the program: hloom profile",
    ("nothing.py",): "there is no file nothing.py",
    ("--timeline", "/nowhere/t.json", "-c", "pass"): "cannot write /nowhere/t.json",
}


@pytest.mark.parametrize("arguments", BAD)
def test_wrong_command_lines(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", *arguments]) == 2
    assert BAD[arguments] in capsys.readouterr().err


def test_a_module_is_profiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module, text = tmp_path / "m.mlir", "func.func @main(%x: tensor<40xf32>) -> tensor<40xf32> {\n  "
    module.write_text(text + "%0 = stablehlo.tanh %x : tensor<40xf32>\n  return %0 : tensor<40xf32>\n}\n")
    assert main(["profile", "--json", str(module), "--random", "--repeat", "3"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["calls"] for row in rows if "tanh" in row["name"]] == [4]
    assert main(["profile", str(tmp_path / "none.hlo"), "--random"]) == 2
    assert "none.hlo" in capsys.readouterr().err


def test_run_writes_a_timeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module, out = tmp_path / "m.hlo", tmp_path / "out.json"
    module.write_text("HloModule m\n\nENTRY e {\n  x = f32[40] parameter(0)\n  ROOT y = f32[40] tanh(x)\n}\n")
    assert main(["run", str(module), "--random", "--timeline", str(out), "--repeat", "2"]) == 0
    assert re.search(r"result 0: f32\[40\]", capsys.readouterr().out)
    document = read_trace(out)
    assert len(on_track(document, "Kernels and products")) == 3 and on_track(document, "Compiling")
    assert main(["run", str(module), "--random", "--timeline", str(tmp_path / "none" / "t.json")]) == 2
    assert "cannot write" in capsys.readouterr().err
