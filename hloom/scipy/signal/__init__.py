"""`hloom.scipy.signal`: convolutions, trends and spectra of signals."""

from ...namespaces import publish as _publish
from . import convolutions, spectra, trends
from .convolutions import (
    convolve as convolve,
    convolve2d as convolve2d,
    correlate as correlate,
    correlate2d as correlate2d,
    fftconvolve as fftconvolve,
)
from .spectra import (
    csd as csd,
    istft as istft,
    stft as stft,
    welch as welch,
)
from .trends import (
    detrend as detrend,
)

__all__: list[str] = []
__all__ += convolutions.__all__
__all__ += spectra.__all__
__all__ += trends.__all__

del convolutions, spectra, trends

_publish(__name__)
