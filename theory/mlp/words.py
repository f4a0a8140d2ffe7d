"""What every formula of trained wide networks is made of: parameters, assumptions, and the axioms they start from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..formula import Assumption, Axiom, Derivation, Domain, Parameter, Source
from .dmft import Reading, Rules
from .network import Network

__all__ = ["ASSUMPTIONS", "AXIOMS", "CONVENTIONS", "EXAMPLE", "NETWORK", "SEED", "T", "T_MAX", "read", "record"]

SEED = Source("Spectral dynamics in deep networks: feature learning, outlier escape, and learning rate transfer")

_POSITIVE = Domain("real", low=0, open_low=True)
_ACTIVATION = Domain("choice", choices=("linear", "tanh", "erf", "relu", "gelu"))
_SWITCH = Domain("choice", choices=("false", "true"))

T = Parameter("t", "updates done", Domain("integer", low=0), typical=(0, 12))
T_MAX = Parameter("t_max", "updates within which an escape is looked for", Domain("integer", low=1), typical=(1, 20))

NETWORK = (
    Parameter("activation", "activation; erf is erf(h/sqrt 2)", _ACTIVATION),
    Parameter("gram", "x x^T/D of the training inputs, in full", Domain("covariance"), latex="K"),
    Parameter("targets", "one a sample, or one row a sample", Domain("matrix"), optional=True, latex="y"),
    Parameter("loss", "loss", Domain("choice", choices=("squared", "cross_entropy")), default="squared"),
    Parameter("labels", "class of each sample, from 0", Domain("vector", low=0), optional=True),
    Parameter("classes", "number of classes", Domain("integer", low=2), optional=True),
    Parameter("gamma0", "output scale: f is divided by gamma0 N", _POSITIVE, typical=(0.5, 5), latex=r"\gamma_0"),
    Parameter("eta0", "learning rate over gamma0^2 N", _POSITIVE, typical=(0.02, 0.6), latex=r"\eta_0"),
    Parameter("depth", "hidden layers", Domain("integer", low=2), default=2, latex="L"),
    Parameter("layer", "hidden matrix, 1 next to the inputs", Domain("integer", low=1), default=1, latex=r"\ell"),
    Parameter("nu", "rows over columns of each hidden matrix", _POSITIVE, default=1, latex=r"\nu"),
    Parameter("sigma", "initial standard deviation of a hidden weight", _POSITIVE, default=1, latex=r"\sigma"),
    Parameter("momentum", "momentum", Domain("real", 0, 1, open_high=True), default=0),
    Parameter("nesterov", "Nesterov's momentum", _SWITCH, default="false"),
    Parameter("weight_decay", "decay of every weight a step", Domain("real", 0, 1, open_high=True), default=0),
    Parameter("residual", "branch scale; a plain network if left out", _POSITIVE, optional=True),
    Parameter("bias_rate", "rate of the hidden biases over eta; none if left out", Domain("real", low=0), optional=True),
    Parameter("bias_std", "initial standard deviation of the biases", Domain("real", low=0), default=0),
    Parameter("batch", "samples a step, taken in turn; all if left out", Domain("integer", low=1), optional=True),
    Parameter("independent", "true: as if spikes did not depend on the initial weights", _SWITCH, default="false"),
    Parameter("samples", "Monte Carlo samples a scramble, a power of 2", Domain("integer", 256, 2**20), default=2**14),
    Parameter("seed", "seed of the scrambles", Domain("integer", low=0), default=0),
)  # fmt: skip
EXAMPLE = {"t": "6", "activation": "tanh", "gram": "1", "targets": "1", "gamma0": "3", "eta0": "0.3", "samples": "1024"}

ASSUMPTIONS = (
    Assumption("wide_layers", "every width is large; steps and samples are few beside it"),
    Assumption("gaussian_initial_weights", "independent N(0, sigma^2) hidden weights, N(0, 1) first and last ones"),
    Assumption("zero_initial_output", "f(0) = 0: its value, of order 1/(gamma0 sqrt N), is subtracted in a network"),
    Assumption("stable_rate", "the learning rate is below instability: beyond it a network amplifies its fluctuations"),
)
CONVENTIONS = (
    "f = w.phi(h)/(gamma0 N_L), h of the next layer W phi/sqrt(N_in); loss (1/P) sum (y-f)^2/2, measured before update t; "
    "learning rate eta0 gamma0^2 N_L; k = s P + mu counts spikes s < t; g = gamma0 N_L df/dh; G is g.g/N_in, not /N_out; "
    "singular values are those of W/sqrt(N_in), bulk sigma |1 -+ sqrt(nu)|"
)

FORWARD = Axiom(
    "a Gaussian matrix forward",
    "W x has covariance variance <x x'> and responds to W^T g by variance <dx/dr>; the rival divides by the rows",
    lambda matrix: matrix.variance,
    lambda matrix: matrix.variance / matrix.aspect,
)
BACKWARD = Axiom(
    "a Gaussian matrix backward",
    "W^T g has covariance variance (rows/columns) <g g'>, and responds likewise to W x; the rival forgets the ratio",
    lambda matrix: matrix.variance * matrix.aspect,
    lambda matrix: matrix.variance,
)
DEPENDENCE = Axiom(
    "spikes depend on the initial weights",
    "a vector computed with W^T responds to it when W acts on it; the rival takes the products for independent",
    True,
    False,
)
AXIOMS = (FORWARD, BACKWARD, DEPENDENCE)

_WHY = {
    "covariance": "covariance of the Gaussian part",
    "response": "response, by Stein's identity",
    "field": "on one neuron",
    "number": "the average over neurons has become a number",
}


def read(known: Mapping[str, Any], network: Network) -> Reading:
    """The network's DMFT equations under the axioms' values."""
    return Reading(network.program, Rules(known[FORWARD.name], known[BACKWARD.name], known[DEPENDENCE.name]))


def record(d: Derivation, reading: Reading, until: Any = None) -> None:
    """Every equation of the reading as a step, up to the one that defines `until`."""
    for what, left, right in reading.equations():
        d.step(_WHY[what], left, right)
        if left == until:
            return
