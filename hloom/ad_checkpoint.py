"""`hloom.ad_checkpoint`: names for values, policies and their answers, and the residuals of a backward pass.

`hloom.checkpoint` is the transformation.
"""

from .namespaces import publish as _publish

_publish(__name__)
