"""JAX's own front-end tests, run on hloom: how far a program written for JAX gets, counted by the people who wrote JAX.

    python -m tools.jax_tests run PATH_OF_JAX --ref jax-v0.10.2 --out hloom.jsonl
    python -m tools.jax_tests run PATH_OF_JAX --ref jax-v0.10.2 --with jax --failed-in hloom.jsonl --out jax.jsonl
    python -m tools.jax_tests report hloom.jsonl --beside jax.jsonl

PATH_OF_JAX is a git checkout of JAX. `checkout` cuts its tests, and the helpers of the tests, out of a version.
pytest loads `plugin`: `import jax` finds hloom (`hloom.as_jax`), and each outcome is written to a file.
`stand_ins` and `settings` answer for the internal modules of JAX that tests import: a private name is its counterpart
here (`internals`), or `private`, which fails when a test uses it. `counting` tells tests what they count. `report`
counts by file and by kind of failure, and apart what wants `machinery` that JAX does not publish. The tests need
absl-py, and for `--with jax` JAX itself.
"""
