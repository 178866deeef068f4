from .ravel import ravel_pytree as ravel_pytree
