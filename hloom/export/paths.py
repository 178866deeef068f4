"""The leaves of (positional, keyword) arguments, in JAX's words: ``args[0]``, ``kwargs['b']``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tracer.trees.nodes import DictKey, SequenceKey, keystr
from ..tracer.trees.treedef import PyTreeDef, paths_of_structure


def path_text(path: Sequence[Any]) -> str:
    """A path in (positional, keyword) arguments, as JAX writes it: ``args[0]['w']``."""
    match path:
        case [SequenceKey(0), *rest]:
            return f"args{keystr(tuple(rest))}"
        case [SequenceKey(1), DictKey(), *_]:
            return f"kwargs{keystr(tuple(path[1:]))}"
    return keystr(tuple(path))


def argument_names(in_tree: PyTreeDef) -> list[str]:
    """The leaves of (positional, keyword) arguments, in JAX's words: ``args[0]``, ``kwargs['b']``."""
    return [path_text(path) for path in paths_of_structure(in_tree)]
