"""Wide multilayer perceptrons during training: loss, kernels, and outliers whose spikes depend on the initial weights."""

from .dmft import Mean, Reading, Rules
from .network import Network, Spike, phi
from .outliers import ESCAPE_TIME, LOWER_OUTLIERS, OUTLIERS
from .overlaps import OVERLAPS
from .probe import Probe, box, spectral_probe
from .training import KERNELS, LOSS

__all__ = ["FORMULAS", "Mean", "Network", "Probe", "Reading", "Rules", "Spike", "box", "phi", "spectral_probe"]

FORMULAS = (LOSS, KERNELS, OUTLIERS, LOWER_OUTLIERS, ESCAPE_TIME, OVERLAPS)
