"""run_hlo: any HLO module, as text or as an object, run on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..hlo.backend import get_compiler
from ..hlo.errors import ExecutionError
from ..hlo.ir import HloModule
from ..hlo.text.parser import parse
from .config import config


def run_hlo(
    text_or_module: str | HloModule, *args: Any, backend: str | None = None, target: str = "cpu"
) -> list[np.ndarray[Any, Any]]:
    """Compile a module and run it on array-likes: one a leaf of the entry's parameters. The result's leaves, as NumPy.

    backend: "numba" or "evaluator"; None: the one that `hloom.config.hloom_backend` names. HloParseError for malformed
    text, ExecutionError if the arguments are not of the parameters' types (Python numbers take them).
    """
    module = parse(text_or_module) if isinstance(text_or_module, str) else text_or_module
    leaves = [leaf for p in module.entry.parameters for leaf in p.shape.leaves()]
    if len(args) != len(leaves):
        raise ExecutionError(f"module {module.name} takes {len(leaves)} arrays, not {len(args)}")
    arrays = [
        np.asarray(a, leaf.element.dtype) if isinstance(a, bool | int | float | complex) else np.asarray(a)
        for a, leaf in zip(args, leaves, strict=True)
    ]
    executable = get_compiler(backend or config.hloom_backend).compile(module, target=target)
    return executable.execute(arrays)
