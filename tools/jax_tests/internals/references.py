"""Private functions of JAX on references: the methods of references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hloom


def _run_state(f: Callable[..., Any]) -> Callable[..., Any]:
    """f on references to the arguments; returns their final contents."""

    def run(args: Any) -> Any:
        refs = hloom.tree.map(hloom.new_ref, args)
        f(refs)
        return hloom.tree.map(hloom.freeze, refs)

    return run


PRIVATE: dict[tuple[str, str], Any] = {
    ("state.discharge", "run_state"): _run_state,
    ("state.primitives", "ref_get"): lambda ref, idx=...: ref.get(idx),
    ("state.primitives", "ref_set"): lambda ref, idx, value: ref.set(value, idx),
    ("state.primitives", "ref_swap"): lambda ref, idx, value: ref.swap(value, idx),
    ("state.primitives", "ref_addupdate"): lambda ref, idx, value: ref.addupdate(value, idx),
}
