"""`hloom.scipy.signal`: convolutions, trends and spectra of signals."""

from ...namespaces import publish as _publish

_publish(__name__, examples=("from hloom import numpy as jnp", "from hloom.scipy import signal"))
