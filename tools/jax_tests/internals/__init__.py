"""Private names of JAX that its tests use as tools and that have a meaning here, under another name.

Each module has tables. PRIVATE: by the module's path in `jax._src` and the name; PUBLIC: the same for names that tests
import from public modules and that are no part of their interface; METHODS: private methods of public classes.
Each entry has the meaning that it has in JAX.
"""

from __future__ import annotations

from typing import Any

from . import errors, general, key_reuse, pallas, references, sharding, sizes, sparse, trees, values

PRIVATE: dict[tuple[str, str], Any] = {
    **errors.PRIVATE, **general.PRIVATE, **key_reuse.PRIVATE, **pallas.PRIVATE, **references.PRIVATE,
    **sharding.PRIVATE, **sizes.PRIVATE, **trees.PRIVATE, **values.PRIVATE,
}  # fmt: skip

PUBLIC: dict[tuple[str, str], Any] = {**general.PUBLIC, **key_reuse.PUBLIC, **pallas.PUBLIC, **sparse.PUBLIC}

METHODS: list[tuple[type, str, Any]] = [*general.METHODS, *sharding.METHODS, *sizes.METHODS, *values.METHODS]
