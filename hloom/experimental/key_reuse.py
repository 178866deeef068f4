"""`hloom.experimental.key_reuse`: how random keys that are used twice are found. JAX's meaning of it.

A key that is used twice gives the same numbers twice, which is seldom intended. The setting ``jax_debug_key_reuse``
(`hloom.debug_key_reuse` for a block, the environment variable JAX_DEBUG_KEY_REUSE for a process) makes the second use a
`hloom.errors.KeyReuseError`, which says where both are:

>>> import hloom
>>> with hloom.debug_key_reuse(True):
...     key = hloom.random.key(0)
...     val1 = hloom.random.normal(key)
...     val2 = hloom.random.normal(key)
Traceback (most recent call last):
    ...
hloom.errors.KeyReuseError: normal: Previously-consumed key passed to ... at index 0 ...

`split`, drawing numbers, an index that is a slice, and joining arrays of keys use keys up. `fold_in`, `key_data`,
comparing keys and changing the shape of their arrays do not. A key from `key`, `split`, `fold_in`, `wrap_key_data` or
`clone` is new. Arrays of words (`PRNGKey`) are not watched: each function makes a new key of them.

Jitted functions are looked at when they are traced, with all that they call; loops may not use a key in two turns, and
of the branches of a `cond` each may use it. Outside of jit, concrete keys are marked. While the setting is off, nothing
is recorded, marked or looked at.
"""

from ..namespaces import publish as _publish

_publish(__name__)
