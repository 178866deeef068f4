"""`hloom.experimental.scheduling_groups`: calls that carry attributes for compilers, with the names of
jax.experimental.scheduling_groups.

hloom's passes do nothing about them; HLO text has them as `frontend_attributes` of the call.
"""

from typing import Any as _Any

from ..namespaces import publish as _publish
from .xla_metadata import xla_metadata_call

__all__ = ["scheduling_group", "xla_metadata_call"]


def scheduling_group(name: str) -> _Any:
    """A decorator for functions whose operations an accelerator's compiler should schedule together:
    ``xla_metadata_call(scheduling_group=name)``.

    >>> scheduling_group("first")(jnp.add)(1, 2)
    Array(3, dtype=int32, weak_type=True)
    """
    return xla_metadata_call(scheduling_group=name)


_publish(__name__, examples=("from hloom.experimental import scheduling_groups",))
