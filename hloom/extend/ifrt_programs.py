"""`hloom.extend.ifrt_programs`: programs for servers of devices, with the name of jax.extend.ifrt_programs."""

from ..namespaces import publish as _publish
from ..namespaces.not_written import not_written as _not_written

__all__ = ["ifrt_programs"]

ifrt_programs = _not_written(
    __name__, "ifrt_programs", "it makes programs for IFRT, XLA's interface to servers of devices"
)["ifrt_programs"]

_publish(__name__)
