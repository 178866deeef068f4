from .nearest import vq as vq
