"""`hloom.random`: random numbers from keys, the same bits as jax.random's. See `tracer/random`."""

from . import numpy as _numpy  # arrays get their methods, and backends are made known
from .tracer.random import PRNGKey as PRNGKey
from .tracer.random import bernoulli as bernoulli
from .tracer.random import bits as bits
from .tracer.random import categorical as categorical
from .tracer.random import clone as clone
from .tracer.random import exponential as exponential
from .tracer.random import fold_in as fold_in
from .tracer.random import gumbel as gumbel
from .tracer.random import key as key
from .tracer.random import key_data as key_data
from .tracer.random import key_impl as key_impl
from .tracer.random import laplace as laplace
from .tracer.random import logistic as logistic
from .tracer.random import normal as normal
from .tracer.random import permutation as permutation
from .tracer.random import rademacher as rademacher
from .tracer.random import randint as randint
from .tracer.random import split as split
from .tracer.random import truncated_normal as truncated_normal
from .tracer.random import uniform as uniform
from .tracer.random import wrap_key_data as wrap_key_data

del _numpy
