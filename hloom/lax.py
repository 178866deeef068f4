"""`hloom.lax`: HLO's operations one by one, and control flow. See `tracer/lax`."""

from . import numpy as _numpy  # arrays get their methods, and backends are made known
from .tracer.control_flow import cond as cond
from .tracer.control_flow import switch as switch
from .tracer.control_flow import while_loop as while_loop
from .tracer.lax import *  # noqa: F403
from .tracer.scan import fori_loop as fori_loop
from .tracer.scan import map as map
from .tracer.scan import scan as scan

del _numpy
