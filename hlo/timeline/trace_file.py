"""Timelines as files in the Trace Event format: JSON that ui.perfetto.dev, chrome://tracing and TensorBoard show.

Source: "Trace Event Format" by Google (the JSON object format, with complete events "X", counters "C", metadata "M").
Times are microseconds from the beginning of the recording. The format has processes and threads: a track is a process
here, and a thread has a row in each track in which it did something. A row's spans must contain each other or be apart;
a thread's spans are, as they end in the order in which calls return.

Names come from users and from HLO files. They are data: JSON strings, without lone surrogates.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import IO

from .spans import Track
from .timeline import Timeline

_TRACKS = {track: number for number, track in enumerate(Track, 1)}
_MEMORY = len(_TRACKS) + 1


def write_trace(timeline: Timeline, path: Path | str) -> None:
    """Write the file; gzipped if its name ends in ".gz". It is complete or it is not there."""
    path = Path(path)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with _opened(unfinished, path.suffix == ".gz") as file:
            file.writelines(_chunks(timeline))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _opened(path: Path, zipped: bool) -> IO[str]:
    return gzip.open(path, "wt", encoding="ascii") if zipped else path.open("w", encoding="ascii")


def to_json(timeline: Timeline) -> str:
    """The text of the file."""
    return "".join(_chunks(timeline))


def _chunks(timeline: Timeline) -> Iterator[str]:
    notes = {"process": os.getpid(), **timeline.notes}
    yield f'{{"displayTimeUnit":"ns","otherData":{_text(notes)},"traceEvents":[\n'
    yield ",\n".join(_metadata(timeline))
    start = timeline.started
    for span in timeline.spans:
        name, arguments = _name(span.name), _arguments(span.arguments)
        yield (
            f',\n{{"name":{name},"cat":"{span.kind.value}","ph":"X","pid":{_TRACKS[span.track]},"tid":{span.thread},'
            f'"ts":{(span.start - start) / 1e3:.3f},"dur":{(span.end - span.start) / 1e3:.3f}{arguments}}}'
        )
    for count in timeline.counts:
        yield (
            f',\n{{"name":{_name(count.name)},"ph":"C","pid":{_MEMORY},"tid":0,'
            f'"ts":{(count.time - start) / 1e3:.3f},"args":{_text(count.values)}}}'
        )
    yield "\n]}\n"


def _metadata(timeline: Timeline) -> list[str]:
    """Names and order of the tracks that have something, and of the rows in them."""
    rows = sorted({(_TRACKS[span.track], span.thread) for span in timeline.spans})
    used = {number for number, _ in rows} | ({_MEMORY} if timeline.counts else set())
    names = {number: track.value for track, number in _TRACKS.items()} | {_MEMORY: "Memory"}
    main = os.getpid()
    lines = []
    for number in sorted(used) or [_TRACKS[Track.PYTHON]]:
        lines.append(_about("process_name", number, 0, name=names[number]))
        lines.append(_about("process_sort_index", number, 0, sort_index=number))
    for number, thread in rows:
        name = timeline.threads.get(thread, "")
        shown = "main thread" if thread == main else name or f"thread {thread}"
        lines.append(_about("thread_name", number, thread, name=shown))
        lines.append(_about("thread_sort_index", number, thread, sort_index=0 if thread == main else thread))
    return lines


def _about(what: str, process: int, thread: int, **values: object) -> str:
    return f'{{"name":"{what}","ph":"M","pid":{process},"tid":{thread},"args":{_text(values)}}}'


@lru_cache(4096)
def _name(name: str) -> str:
    return json.dumps(_clean(name))


def _arguments(arguments: Mapping[str, object]) -> str:
    return f',"args":{_text(arguments)}' if arguments else ""


def _text(values: Mapping[str, object]) -> str:
    return json.dumps({_clean(str(key)): _plain(value) for key, value in values.items()}, separators=(",", ":"))


def _plain(value: object) -> object:
    """A value that JSON has, as it is; all else as text. JSON has no NaN and no infinity."""
    if isinstance(value, bool | int) or (isinstance(value, float) and abs(value) < float("inf")):
        return value
    return _clean(str(value))


def _clean(text: str) -> str:
    """Without lone surrogates, which are no characters: they come from bytes that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode() if not text.isascii() else text
