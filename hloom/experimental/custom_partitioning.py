"""`hloom.experimental.custom_partitioning`: functions with rules for several devices, with names of
jax.experimental.custom_partitioning.
"""

from collections.abc import Callable as _Callable
from typing import Any as _Any

from ..namespaces import publish as _publish
from ..tracer.wrapping import wraps as _wraps

__all__ = ["custom_partitioning"]


class custom_partitioning:  # JAX's name
    """A function of arrays with a rule that divides it over devices.

    The rules are kept and not used: the partitioner of the library divides the function as it divides all others, so
    the results are those of the function. The rules of JAX say only which parts of arrays are moved.

    static_argnums: positions of arguments that are no arrays.

    >>> from hloom.experimental.custom_partitioning import custom_partitioning
    >>> @custom_partitioning
    ... def double(x):
    ...     return 2 * x
    >>> _ = double.def_partition(partition=None, sharding_rule="i -> i")
    >>> double(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """

    partition: _Callable[..., _Any] | None = None
    infer_sharding_from_operands: _Callable[..., _Any] | None = None
    propagate_user_sharding: _Callable[..., _Any] | None = None
    sharding_rule: _Any = None

    def __init__(self, fun: _Callable[..., _Any], static_argnums: tuple[int, ...] = ()) -> None:
        _wraps(fun)(self)
        self.fun = fun
        self.static_argnums = static_argnums

    def def_partition(
        self,
        partition: _Callable[..., _Any] | None,
        infer_sharding_from_operands: _Callable[..., _Any] | None = None,
        propagate_user_sharding: _Callable[..., _Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: _Any = None,
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> _Callable[..., _Any] | None:
        """Set the rules; returns `partition`."""
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.sharding_rule = sharding_rule
        return partition

    def __call__(self, /, *args: _Any, **kwargs: _Any) -> _Any:
        return self.fun(*args, **kwargs)


_publish(__name__)
