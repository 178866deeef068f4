from .convolutions import (
    convolve as convolve, convolve2d as convolve2d, correlate as correlate, correlate2d as correlate2d,
    fftconvolve as fftconvolve,
)
from .spectra import csd as csd, istft as istft, stft as stft, welch as welch
from .trends import detrend as detrend
