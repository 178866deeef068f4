"""`hloom.export`: programs as files, with the names of jax.export. There are no symbolic sizes, and no StableHLO."""

from typing import Any as _Any

from .namespaces import publish as _publish
from .namespaces.not_written import not_written as _not_written

_NAMES = """
DisabledSafetyCheck Exported SymbolicScope deserialize export register_namedtuple_serialization
register_pytree_node_serialization symbolic_args_specs symbolic_shape
"""
__all__ = [*_NAMES.split(), "default_export_platform", "is_symbolic_dim"]

globals().update(
    _not_written(
        __name__,
        _NAMES,
        "it needs programs of symbolic sizes and a file format for them; `jit(f).lower(...).as_text()` is HLO text, "
        "which hloom.run_hlo runs, and hloom.experimental.serialize_executable stores compiled programs",
    )
)


def default_export_platform() -> str:
    """The platform for which programs are exported by default.

    >>> hloom.export.default_export_platform()
    'cpu'
    """
    return "cpu"


def is_symbolic_dim(p: _Any) -> bool:
    """Whether a size is symbolic. None is: `symbolic_shape` cannot make any.

    >>> hloom.export.is_symbolic_dim(3)
    False
    """
    return False


_publish(__name__)
