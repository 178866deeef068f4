"""How objects of the package show themselves in notebooks."""

from __future__ import annotations

from .library import part_above


def in_notebooks(self: object) -> str:
    """The object as HTML. ``_repr_html_ = in_notebooks`` in a class, with a view in `hloom/notebooks/views.py`: that is
    above this layer, and is loaded when the first object is shown."""
    shown: str = part_above("notebooks").html_of(self)
    return shown
