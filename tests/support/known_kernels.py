"""Kernels and fusions that are known by their form, and how to forget them.

They are known for this process, whatever a test has changed meanwhile: a limit, a rule, a function of the emitter.
"""

from __future__ import annotations

import sys

_KNOWN = (
    ("hloom.numba_backend.fused_computations", "_known"), ("hloom.numba_backend.fused_computations", "_families"),
    ("hloom.numba_backend.native_loops.emit", "_finished"), ("hloom.numba_backend.native_loops.emit", "_written"),
    ("hloom.numba_backend.emitted_kernel", "_made"),
    ("hloom.hlo.passes.by_form", "_known"), ("hloom.hlo.passes.by_form", "_alike"),
    ("hloom.numba_backend.policy.products", "_kernel_of"), ("hloom.numba_backend.policy.products", "_tile_schedule"),
    ("hloom.numba_backend.remembered", "_known"),
)  # fmt: skip


def forget_known() -> None:
    """Forget them, in the modules that are loaded."""
    for module, known in _KNOWN:
        if module in sys.modules:
            found = getattr(sys.modules[module], known)
            (found.cache_clear if hasattr(found, "cache_clear") else found.clear)()
