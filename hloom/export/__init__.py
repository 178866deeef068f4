"""`hloom.export`: programs as files in StableHLO, with the names of jax.export. JAX reads these files, and hloom reads
JAX's.

    exporting       export: from a jitted function to an Exported
    exported        Exported
    calling         its calls
    writing         its form as bytes; reading.py: back
"""

from ..namespaces import publish as _publish

_publish(__name__)
