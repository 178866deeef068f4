"""Importing this module says where the rules are; they are imported when the first one is asked for. `hloom.lax` does,
and so do the modules with which a transformation begins."""

from __future__ import annotations

from functools import partial

from ...hlo.support.loading import load
from .tables import families_come_from

families_come_from(partial(load, ".every", __package__), partial(load, ".every_batch", __package__))
