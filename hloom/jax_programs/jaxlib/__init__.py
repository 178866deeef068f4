"""The modules of `jaxlib` that libraries import, in place of JAX's binary package: classes to compare with."""
