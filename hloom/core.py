"""`hloom.core`: the names of jax.core that libraries use. `hloom.extend.core` has more."""

import typing as _typing

from .namespaces import publish as _publish
from .tracer.aval import ShapedArray
from .tracer.scopes import ensure_compile_time_eval
from .tracer.tracer import Trace, Tracer

if _typing.TYPE_CHECKING:
    from .jaxpr.atoms import Atom
    from .jaxpr.evaluate import eval_jaxpr

AbstractValue = ShapedArray
"""The type of a value; there is one class of them."""

__all__ = ["AbstractValue", "Atom", "ShapedArray", "Trace", "Tracer", "ensure_compile_time_eval", "eval_jaxpr"]

_publish(__name__, later={"Atom": "jaxpr.atoms", "eval_jaxpr": "jaxpr.evaluate"})
