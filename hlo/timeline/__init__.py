"""Timelines: the events of a program over time. All layers report to `spans.py`; the other files make something of it.

    spans       the tracks of a timeline, and the recorder that every layer reports to
    timeline    a finished recording: spans, numbers over time, names of threads
    trace_file  a timeline as a file in the Trace Event format, which Perfetto and Chrome show
    accounting  where the time of a thread went, each nanosecond once
    summary     a row for each kernel and product: times, bytes, operations, the user's line
"""
