"""Timelines: what is recorded, in which thread, and what the file says."""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo import parse
from hloom.hlo.backend import get_compiler
from hloom.hlo.timeline.spans import RECORDERS, Kind, Recorder, Span, Track, spanning
from hloom.hlo.timeline.spans import start as start_recorder
from hloom.hlo.timeline.spans import stop as stop_recorder
from hloom.hlo.timeline.timeline import Timeline, timeline_of
from hloom.hlo.timeline.trace_file import to_json
from hloom.numba_backend.runtime import recorder
from hloom.numba_backend.runtime.executor import EXECUTOR
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.program import Program, ProgramBuilder, pointer, programs, size
from hloom.numba_backend.runtime.recorder_code import EXECUTE
from hloom.numba_backend.runtime.store import default_store
from hloom.numba_backend.runtime.threads import get_num_threads, set_num_threads

import hloom
import hloom.numpy as jnp
from hloom import profiler
from support.runtime_kernels import PRED, S64
from support.trace_events import check_trace, on_track, read_trace

WIDE = 1500


@hloom.jit
def inner(x: Any) -> Any:
    return jnp.tanh(x) * 2


@hloom.jit
def everything(x: Any, w: Any) -> Any:
    """A product and a kernel for threads, a loop, a factorisation, a call of Python."""
    y = inner(x @ w)
    total = hloom.lax.fori_loop(0, 100, lambda i, s: s + jnp.sin(s) * y[0, 0], y[0, 1])
    factor = jnp.linalg.cholesky(jnp.eye(48) + 0.01 * y[:48, :48] @ y[:48, :48].T)
    seen = hloom.pure_callback(lambda a: np.asarray(a) + 1, hloom.ShapeDtypeStruct((), jnp.float32), total)
    return y.sum() + factor.sum() + seen


def names(events: list[dict[str, Any]]) -> set[str]:
    return {event["name"] for event in events}


def test_all_that_happens_is_on_a_track(tmp_path: Path) -> None:
    x, w = np.ones((WIDE, 600), np.float32) / 600, jnp.ones((600, 500))
    with profiler.trace(tmp_path):
        for step in range(3):
            with profiler.StepTraceAnnotation("train", step_num=step), profiler.TraceAnnotation("work", batch=7):
                everything(hloom.device_put(x), w)
    document = read_trace(tmp_path / "timeline.json")
    (zipped,) = tmp_path.glob("plugins/profile/*/*.trace.json.gz")
    assert read_trace(zipped)["traceEvents"] == document["traceEvents"]
    steps = on_track(document, "Steps")
    assert [(s["name"], s["args"]["step_num"]) for s in steps] == [("train", 0), ("train", 1), ("train", 2)]
    python = on_track(document, "Python")
    assert Counter(e["name"] for e in python)["everything"] == 3
    assert next(e for e in python if e["name"] == "work")["args"] == {"batch": 7}
    assert "tracing everything for jit" in names(on_track(document, "Tracing"))
    assert {"fusion", "cse"} <= names(on_track(document, "Passes"))
    compiling = names(on_track(document, "Compiling"))
    assert "compilation of jit_everything" in compiling
    for what in ("emit ", "assign buffers of ", "generate code of "):
        assert any(name.startswith(what) for name in compiling), what
    assert any(name.startswith(("LLVM ", "read ")) for name in compiling)
    assert {"device_put", "from NumPy"} <= names(on_track(document, "Copies"))
    assert "in Python" in names(on_track(document, "Libraries and callbacks"))
    assert "lapack spotrf" in names(on_track(document, "Kernels and products"))
    assert {"arrays and temporaries", "process"} <= names(on_track(document, "Memory"))
    programs_run = [e for e in on_track(document, "Programs") if e["name"] == "jit_everything"]
    assert len(programs_run) == 3
    product = [
        e for e in on_track(document, "Kernels and products")
        if e["name"] == f"f32[{WIDE}x600] @ [600x500]" and e["cat"] != "piece"
    ]  # fmt: skip
    assert len(product) == 3
    about = product[0]["args"]
    assert about["flops"] == 2 * WIDE * 600 * 500
    assert about["bytes"] == 4 * (WIDE * 600 + 600 * 500 + WIDE * 500)
    assert about["program"] == "jit_everything" and about["instruction"]
    line = everything.__wrapped__.__code__.co_firstlineno + 3
    assert about["source"] == f"{__file__}:{line}" and "dot" in about["op_name"]
    loops = [e for e in on_track(document, "Kernels and products") if "while" in str(e.get("args"))]
    assert len(loops) == 3, "a native loop is one event"


def recorded_pieces() -> tuple[Timeline, list[Span], list[Span]]:
    """60 calls of a program with one kernel: the timeline, the kernel's spans, and those of its pieces. On a busy
    machine kernels are not split for a while, 1,024 calls at most: see threads.py."""
    f = hloom.jit(lambda x: jnp.exp(x) * jnp.sin(x))
    x = jnp.ones((500, 500))
    f(x)
    for _ in range(40):
        found = Recorder()
        start_recorder(found)
        for _ in range(60):
            f(x)
        timeline = timeline_of(found, stop_recorder(found))
        kernels = [span for span in timeline.spans if span.track is Track.KERNELS]
        pieces = [span for span in kernels if span.kind is Kind.PIECE]
        if pieces:
            break
    return timeline, kernels, pieces


@pytest.mark.skipif(get_num_threads() < 2, reason="one thread")
def test_threads_keep_their_parts() -> None:
    """A worker begins in the second half of each range, even if it comes late."""
    set_num_threads(2)
    try:
        _, kernels, pieces = recorded_pieces()
    finally:
        set_num_threads(None)
    assert pieces
    extent = max(piece.arguments["to"] for piece in pieces)
    for row in kernels:
        if row.kind is not Kind.PIECE:
            own = [piece for piece in pieces if row.start <= piece.start and piece.end <= row.end]
            at_work = {}
            for piece in sorted(own, key=lambda piece: piece.start):
                at_work.setdefault(piece.thread, piece.arguments["from"])
            assert all(begin >= extent // 2 for thread, begin in at_work.items() if thread != row.thread)


@pytest.mark.skipif(get_num_threads() < 2, reason="one thread")
def test_pieces_are_in_the_threads_that_computed_them() -> None:
    timeline, kernels, pieces = recorded_pieces()
    whole = [span for span in kernels if span.kind is not Kind.PIECE]
    assert len(whole) == 60 and len({span.thread for span in whole}) == 1
    extents = set()
    for row in whole:
        own = [piece for piece in pieces if row.start <= piece.start and piece.end <= row.end]
        ranges = sorted((piece.arguments["from"], piece.arguments["to"]) for piece in own)
        if ranges:
            assert ranges[0][0] == 0 and all(a[1] == b[0] for a, b in pairwise(ranges)), "nothing twice"
            extents.add(ranges[-1][1])
            for piece in own:
                pieces.remove(piece)
    assert len(extents) == 1 and not pieces, "each piece is within its row, and they are all of it"
    check_trace(json.loads(to_json(timeline)))


def test_threads_have_rows_of_their_own(tmp_path: Path) -> None:
    f = hloom.jit(lambda x: (x * 3).sum())
    x = jnp.ones(2000)
    f(x)
    begin = threading.Barrier(4)

    def work(count: int) -> None:
        begin.wait()
        for _ in range(count):
            with profiler.TraceAnnotation("turn"):
                f(x)

    counts = [3, 5, 7, 9]
    workers = [threading.Thread(target=work, args=(count,), name=f"worker {count}") for count in counts]
    with profiler.trace(tmp_path):
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    document = read_trace(tmp_path / "timeline.json")
    for track, name in (("Python", "turn"), ("Python", "<lambda>"), ("Programs", "jit_lambda")):
        found = Counter(e["tid"] for e in on_track(document, track) if e["name"] == name)
        assert sorted(found.values()) == counts, (track, name)
    shown = {e["args"]["name"] for e in document["traceEvents"] if e["name"] == "thread_name"}
    assert {f"worker {count}" for count in counts} <= shown


def test_a_trace_may_end_in_another_thread(tmp_path: Path) -> None:
    f = hloom.jit(lambda x: x + 41)
    profiler.start_trace(tmp_path)
    with profiler.TraceAnnotation("not over"):
        f(1)
        thread = threading.Thread(target=profiler.stop_trace)
        thread.start()
        thread.join()
        f(2)
    document = read_trace(tmp_path / "timeline.json")
    assert len(on_track(document, "Programs")) == 1
    assert "not over" not in names(on_track(document, "Python"))
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()


def test_a_forked_child_does_not_record(tmp_path: Path) -> None:
    f = hloom.jit(lambda x: x * 3 + 1)
    f(1.0)
    with profiler.trace(tmp_path):
        f(2.0)
        child = os.fork()
        if child == 0:
            try:
                good = float(f(3.0)) == 10 and not RECORDERS
                try:
                    profiler.stop_trace()
                except RuntimeError:
                    pass
                else:
                    good = False
                with profiler.trace(tmp_path / "child"):
                    f(4.0)
                good = good and len(on_track(read_trace(tmp_path / "child" / "timeline.json"), "Programs")) == 1
                os._exit(0 if good else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        f(5.0)
    assert len(on_track(read_trace(tmp_path / "timeline.json"), "Programs")) == 2


def test_nothing_of_it_is_left_afterwards(tmp_path: Path) -> None:
    listeners = [list(known) for known in hloom.tracer.profiling.monitoring.LISTENERS]
    f = hloom.jit(lambda x: jnp.cos(x).sum())
    x = jnp.linspace(0, 1, 70_000)
    before = f(x)
    with pytest.raises(KeyError, match="mine"), profiler.trace(tmp_path):
        assert RECORDERS
        assert recorder._recorder._hook[EXECUTE] != default_store().get(EXECUTOR)
        assert np.asarray(f(x)) == np.asarray(before)
        raise KeyError("mine")
    assert not RECORDERS
    assert recorder._recorder._hook[EXECUTE] == default_store().get(EXECUTOR)
    assert [list(known) for known in hloom.tracer.profiling.monitoring.LISTENERS] == listeners
    assert "hloom-recorder" not in [thread.name for thread in threading.enumerate()]


def test_errors_come_out_as_without_a_trace(tmp_path: Path) -> None:
    def fails(_: Any) -> Any:
        raise ValueError("from Python")

    f = hloom.jit(lambda x: hloom.pure_callback(fails, hloom.ShapeDtypeStruct((), jnp.float32), x))
    with profiler.trace(tmp_path):
        with pytest.raises(ValueError, match="from Python"):
            np.asarray(f(1.0))
        with pytest.raises(TypeError):
            f("text")
        hloom.monitoring.clear_event_listeners()
    document = read_trace(tmp_path / "timeline.json")
    assert "in Python" in names(on_track(document, "Libraries and callbacks"))


def turns(x: Any) -> Any:
    return hloom.lax.while_loop(lambda s: s[0] < 40, lambda s: (s[0] + 1, jnp.cos(s[1]) + s[1].T), (0, x))[1]


SAME: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "a large product": (lambda x, y: x @ y, ((700, 900), (900, 800))),
    "a batch of products": (lambda x, y: x @ y, ((30, 40, 50), (30, 50, 60))),
    "a matrix and a vector": (lambda x, y: x @ y, ((2000, 1500), (1500,))),
    "a kernel for threads": (lambda x: jnp.exp(x).sum(axis=0) + x, ((1500, 1500),)),
    "a loop of rows": (turns, ((600, 600),)),
    "a native loop": (turns, ((5, 5),)),
    "a branch": (lambda x: hloom.lax.cond(x[0] > 0, jnp.sin, jnp.cumsum, x), ((50_000,),)),
    "a sort and a scatter": (lambda x: jnp.sort(x).at[jnp.argsort(x)].add(x), ((30_000,),)),
    "factorisations": (lambda x: jnp.linalg.qr(x)[1], ((9, 50, 40),)),
    "a Fourier transform": (lambda x: jnp.abs(jnp.fft.fft(x)), ((64, 500),)),
    "a convolution": (lambda x, k: jnp.convolve(x, k), ((4000,), (300,))),
}


@pytest.mark.parametrize("case", SAME)
def test_results_are_the_same(case: str) -> None:
    """The executor that records computes what the usual one computes, bit for bit."""
    function, shapes = SAME[case]
    generator = np.random.default_rng(5)
    arguments = [generator.standard_normal(shape, np.float32) for shape in shapes]
    f = hloom.jit(function)
    expected = np.asarray(f(*arguments))
    found = Recorder()
    start_recorder(found)
    try:
        result = np.asarray(f(*arguments))
    finally:
        timeline = timeline_of(found, stop_recorder(found))
    np.testing.assert_array_equal(result, expected)
    assert sum(span.track is Track.PROGRAMS for span in timeline.spans) == 1
    check_trace(json.loads(to_json(timeline)))


HOSTILE = ('"}]}, <script>alert(1)</script>', "new\nline\0", "\ud800 lone", "\N{SNOWMAN}", "%s {0} \\", "")


def test_names_are_data(tmp_path: Path) -> None:
    with profiler.trace(tmp_path):
        for name in HOSTILE:
            with profiler.TraceAnnotation(name, **{name or "empty": float("nan"), "deep": [name]}):
                pass
    found = [e["name"] for e in on_track(read_trace(tmp_path / "timeline.json"), "Python")]
    assert found == [name.replace("\ud800", "\\ud800") for name in HOSTILE]


def test_names_of_a_module_are_data() -> None:
    module = parse(
        'HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n'
        '  ROOT y = f32[4] exponential(x), metadata={op_name="a\\"]}\\n" source_file="</script>" source_line=3}\n}\n'
    )
    executable = get_compiler("numba").compile(module)
    found = Recorder()
    start_recorder(found)
    executable.execute([np.zeros(4, np.float32)])
    timeline = timeline_of(found, stop_recorder(found))
    document = json.loads(to_json(timeline))
    check_trace(document)
    (kernel,) = on_track(document, "Kernels and products")
    assert kernel["args"]["op_name"] == 'a"]}\n' and kernel["args"]["source"] == "</script>:3"


COUNT = KernelSource(
    "count_up",
    """def count_up(lo, hi, counter, again, limit):
    counter[0] = counter[0] + 1
    again[0] = counter[0] < limit
""",
    (S64, PRED, Parameter("size", "s64")),
)


def counting(limit: int) -> Program:
    """A loop of rows: a tiny kernel, `limit` times."""
    builder = ProgramBuilder()
    again, done = builder.label(), builder.label()
    builder.place(again)
    builder.kernel(COUNT, [pointer(0), pointer(1), size(limit)], 1)
    builder.jump_if_false(pointer(1), done)
    builder.jump(again)
    builder.place(done)
    return builder.build()


@pytest.mark.parametrize("kept", [1_000_000, 100])
def test_no_event_is_unaccounted_for(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events come faster than they are read: those that do not fit are counted; those that are too many are summed."""
    monkeypatch.setattr(recorder, "MAX_EVENTS", kept)
    turns = 300_000
    program = counting(turns)
    assert program in programs()
    counter, again = np.zeros(1, np.int64), np.zeros(1, np.uint8)
    recorder.start(lambda: None)
    program.run([counter.ctypes.data, again.ctypes.data])
    found = recorder.stop()
    assert counter[0] == turns
    seen: Counter[int] = Counter()
    for _, events in found.events:
        seen.update(events[:, 0].tolist())
    kept_events = seen.total()
    for row, (number, nanoseconds) in found.sums.items():
        seen[row] += number
        assert nanoseconds >= 0
    assert seen[program.address] == 1 and found.lost == 0
    assert seen.most_common(1)[0][1] == turns, "each turn once; looks for interrupts are the other events"
    assert 0 < kept_events < turns and found.sums
    for _, events in found.events:
        assert (events[:, 2] >= events[:, 1]).all()
        assert (np.diff(events[:, 2]) >= 0).all(), "in the order of their ends"


LEVELS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "nothing": ({"host_tracer_level": 0, "device_tracer_level": 0}, set()),
    "programs": ({"host_tracer_level": 0}, {"Programs", "Kernels and products"}),
    "annotations": ({"host_tracer_level": 1, "device_tracer_level": 0}, {"Python"}),
    "host": ({"device_tracer_level": 0}, {"Python", "Tracing", "Passes", "Compiling"}),
    "all": (
        {"host_tracer_level": 3}, {"Python", "Tracing", "Passes", "Compiling", "Programs", "Kernels and products"},
    ),
}


@pytest.mark.parametrize("level", LEVELS)
def test_levels(level: str, tmp_path: Path) -> None:
    arguments, wanted = LEVELS[level]
    options = profiler.ProfileOptions(**arguments)
    with profiler.trace(tmp_path, profiler_options=options), profiler.TraceAnnotation("mine"):
        hloom.jit(lambda x: x * 5 - len(level))(2.0)
    document = read_trace(tmp_path / "timeline.json")
    used = {e["pid"] for e in document["traceEvents"] if e["ph"] == "X"}
    tracks = {e["args"]["name"] for e in document["traceEvents"] if e["name"] == "process_name" and e["pid"] in used}
    assert tracks - {"Waits", "Copies"} == wanted


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"host_tracer_level": 4}, ValueError), ({"python_tracer_level": -1}, ValueError),
        ({"device_tracer_level": "1"}, ValueError),
        ({"advanced_configuration": {"gpu": 1}}, hloom.errors.UnsupportedError),
    ],
)  # fmt: skip
def test_options_that_make_no_sense(options: dict[str, Any], error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error, match="ProfileOptions"):
        profiler.start_trace(tmp_path, profiler_options=profiler.ProfileOptions(**options))
    assert not RECORDERS


def test_python_functions(tmp_path: Path) -> None:
    def mine(n: int) -> int:
        return n if n < 2 else mine(n - 1) + mine(n - 2)

    before = sys.getprofile()
    if before is not None:
        pytest.skip("another profiler has the hook")
    with profiler.trace(tmp_path, profiler_options=profiler.ProfileOptions(python_tracer_level=1)):
        mine(5)
        thread = threading.Thread(target=mine, args=(1,))
        thread.start()
        thread.join()
    assert sys.getprofile() is None and threading.getprofile() is None
    found = [e for e in on_track(read_trace(tmp_path / "timeline.json"), "Python") if e["name"].endswith("mine")]
    assert len(found) == 15 + 1 and len({e["tid"] for e in found}) == 2
    assert found[0]["args"]["source"] == f"{__file__}:{mine.__code__.co_firstlineno}"


def fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a message of protocol buffers: (number, value or content)."""
    found: list[tuple[int, int | bytes]] = []
    at = 0

    def varint() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            value |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 0x80:
                return value

    while at < len(data):
        number, kind = divmod(varint(), 8)
        value: int | bytes = varint()
        if kind == 2:
            assert isinstance(value, int)
            value, at = data[at : at + value], at + value
        else:
            assert kind == 0
        found.append((number, value))
    return found


def test_a_memory_profile_counts_arrays(tmp_path: Path) -> None:
    kept = [jnp.zeros((321, 17), jnp.int8) for _ in range(200)]
    path = tmp_path / "memory.prof"
    profiler.save_device_memory_profile(path)
    profile = fields(gzip.decompress(path.read_bytes()))
    texts = [value.decode() for number, value in profile if number == 6 and isinstance(value, bytes)]
    assert texts[0] == ""
    kinds = [dict(fields(value)) for number, value in profile if number == 1 and isinstance(value, bytes)]
    named = [(texts[kind[1]], texts[kind[2]]) for kind in kinds]  # type: ignore[index]
    assert named == [("allocations", "count"), ("space", "bytes")]
    functions = {}
    for number, value in profile:
        if number == 5 and isinstance(value, bytes):
            function = dict(fields(value))
            functions[function[1]] = texts[function[2]]  # type: ignore[index]
    found = {}
    for number, value in profile:
        if number == 2 and isinstance(value, bytes):
            sample = dict(fields(value))
            assert isinstance(sample[1], bytes) and isinstance(sample[2], bytes)
            (location,) = packed(sample[1])
            found[functions[location]] = packed(sample[2])
    count, nbytes = found["int8[321,17]"]
    assert count >= 200 and nbytes == count * 321 * 17
    assert len(kept) == 200


def packed(data: bytes) -> list[int]:
    """Numbers one after the other."""
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value, shift = 0, 0
    return found


def test_the_checker_finds_overlaps_and_bad_numbers() -> None:
    timeline = Timeline(0, 100, [Span(Track.PYTHON, "a", 0, 50, 1, {}), Span(Track.PYTHON, "b", 20, 90_000, 1, {})])
    with pytest.raises(AssertionError, match="overlaps"):
        check_trace(json.loads(to_json(timeline)))
    with pytest.raises(AssertionError):
        check_trace({"traceEvents": [{"name": "a", "ph": "X", "pid": 1, "tid": 1, "ts": -1, "dur": 1}]})


def test_spans_that_other_layers_report() -> None:
    with spanning(Track.COPIES, "nobody records"):
        pass
    found = Recorder()
    start_recorder(found)
    with spanning(Track.COPIES, "copy", bytes=3):
        pass
    with spanning(Track.PASSES, "too much detail", detail=3):
        pass
    timeline = timeline_of(found, stop_recorder(found))
    (span,) = [s for s in timeline.spans if s.track in (Track.COPIES, Track.PASSES)]
    assert (span.name, span.arguments, span.kind) == ("copy", {"bytes": 3}, Kind.PLAIN)
    assert timeline.started <= span.start <= span.end <= timeline.ended
