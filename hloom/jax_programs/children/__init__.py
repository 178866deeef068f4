"""`as_jax()` in the processes that a program starts.

A forked process has the modules of its parent. Other processes of Python start anew, with the parent's environment.
There `pass_on` puts this folder first on PYTHONPATH, so that Python runs `sitecustomize.py` of this folder at their
start. Processes that ignore the environment (`python -I`, `-E`) do not.
"""

from __future__ import annotations

import os
import sys

from .sitecustomize import FOLDER, VARIABLE, asked

__all__ = ["pass_on"]


def pass_on(subprocesses: bool) -> None:
    """Make processes of this interpreter that are started from now on find hloom for `import jax`: workers of pools and
    kernels of notebooks; with `subprocesses` all. A parent of this process may have asked for all."""
    if subprocesses or asked() is None:
        os.environ[VARIABLE] = f"{'all' if subprocesses else 'workers'}:{sys.prefix}"
    path = os.environ.get("PYTHONPATH", "")
    if FOLDER not in path.split(os.pathsep):
        os.environ["PYTHONPATH"] = f"{FOLDER}{os.pathsep}{path}" if path else FOLDER
