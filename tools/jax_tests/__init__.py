"""Tests for JAX, run on hloom: JAX's own of the front end, and those of libraries that are built on JAX.

    python -m tools.jax_tests run PATH_OF_JAX --ref jax-v0.10.2 --out hloom.jsonl
    python -m tools.jax_tests run PATH_OF_JAX --ref jax-v0.10.2 --with jax --failed-in hloom.jsonl --out jax.jsonl
    python -m tools.jax_tests report hloom.jsonl --beside jax.jsonl
    python -m tools.jax_tests run PATH_OF_OPTAX --suite optax --out hloom.jsonl

PATH_OF_JAX is a git checkout of JAX; `suites` lists the libraries. `checkout` cuts the tests, and the helpers of the
tests, out of a version. pytest loads `plugin`: `import jax` finds hloom (`hloom.as_jax`), and each outcome is written
to a file. `stand_ins` and `settings` answer for the internal modules of JAX that its tests import: a private name is
its counterpart here (`internals`), or `private`, which fails when a test uses it. `counting` tells tests what they
count. `report` counts by file and by kind of failure, and apart what wants `machinery` that JAX does not publish. The
tests need absl-py, and for `--with jax` JAX itself.
"""
