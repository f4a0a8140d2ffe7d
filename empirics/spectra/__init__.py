"""The spectra of weight matrices, judged against the law of noise."""

from .distance import spectral_distance
from .eigenvalues import forecast
from .model import Layer, weight_spectra
from .null import cache_folder, simulated_null
from .spectrum import Outlier, WeightSpectrum, weight_spectrum

__all__ = [
    "Layer",
    "Outlier",
    "WeightSpectrum",
    "cache_folder",
    "forecast",
    "simulated_null",
    "spectral_distance",
    "weight_spectra",
    "weight_spectrum",
]
