"""jax._src.tree_util: which classes are containers."""

from collections.abc import Callable as _Callable
from collections.abc import Iterator as _Iterator
from collections.abc import Mapping as _Mapping
from typing import Any as _Any
from typing import NamedTuple as _NamedTuple

from ...namespaces import publish as _publish
from ...tracer.trees.nodes import container_classes as _container_classes
from ...tracer.trees.nodes import flatten_one_level as _flatten_one_level
from ...tracer.trees.nodes import is_container_class as _is_container_class

__all__ = ["_registry"]


class _Entry(_NamedTuple):
    to_iter: _Callable[[_Any], tuple[_Any, _Any]]
    """node -> (children, auxiliary data)"""


class _Registry(_Mapping[type, _Entry]):
    """The registered classes of containers; to read, `register_pytree_node` adds."""

    def __getitem__(self, kind: type) -> _Entry:
        if not _is_container_class(kind):
            raise KeyError(kind)
        return _Entry(_flatten_one_level)

    def __contains__(self, kind: object) -> bool:
        return _is_container_class(kind)

    def __iter__(self) -> _Iterator[type]:
        return _container_classes()

    def __len__(self) -> int:
        return sum(1 for _ in _container_classes())


_registry = _Registry()

_publish(__name__)
