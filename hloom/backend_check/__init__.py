"""Does a backend do what every backend must? It runs the table of op cases, whole programs and the interface itself.

    python -m hloom.backend_check NAME               # everything: some minutes
    python -m hloom.backend_check NAME --every 50    # a part of the op table

The evaluator defines the right results. `checking.check_backend` does the same from Python, e.g. in a backend's own
tests. The table is in `op_cases_<family>.py`, `op_table.py` has all of it; the tests of hloom use it for all other
layers. Nothing is imported here: the table needs the IR alone, `programs.py` needs the whole library.
"""
