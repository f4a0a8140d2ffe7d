"""What every alignment formula is made of: the parameters, the scalar words, and the assumptions they share.

a, S are mean and covariance of the training gradients, b, T of the test gradients; in the same-law case b = a = mu and
T = S = Sigma. Everything is per sample: a batch of B samples as the unit would divide S and T by B.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..cumulants import cycle_word, path_word
from ..formula import Assumption, Domain, Parameter, Source
from ..words import Word

__all__ = ["DELTA", "DIMENSION", "K", "LAWS", "M", "MU", "PAIR", "SEED", "SIGMA"]

SEED = Source(
    "Width scaling in normalized residual networks: finite-sample alignment certificates", place="seed 000, theorem 1"
)

MU = Parameter("mu", "mean training gradient", Domain("vector"), typical=(-1, 1), latex=r"\mu")
SIGMA = Parameter("Sigma", "covariance of one training gradient", Domain("covariance"), typical=(0, 2), latex=r"\Sigma")
MU_TEST = Parameter(
    "mu_test", "mean test gradient; mu if left out", Domain("vector"), optional=True, latex=r"\mu_{test}"
)
SIGMA_TEST = Parameter(
    "Sigma_test",
    "covariance of one test gradient; Sigma if left out",
    Domain("covariance"),
    optional=True,
    latex=r"\Sigma_{test}",
)
M = Parameter("M", "training samples averaged", Domain("integer", low=1, infinity=True), typical=(1, 64))
K = Parameter("K", "test samples averaged", Domain("integer", low=1, infinity=True), typical=(1, 64))
DIMENSION = Parameter(
    "d_align",
    "effective alignment dimension",
    Domain("real", low=0, infinity=True),
    typical=(0.01, 10),
    latex=r"d_{align}",
)
DELTA = Parameter(
    "delta",
    "tolerated misalignment probability",
    Domain("real", 0, 1, open_low=True, open_high=True),
    typical=(0.01, 0.5),
    latex=r"\delta",
)

PAIR = (MU, SIGMA, M, K, MU_TEST, SIGMA_TEST)
"""The parameters of a question about one training and one test sample."""
EXAMPLE = {"mu": "1,0.5,0", "Sigma": "1,3,0.25", "M": "4", "K": "9"}
LAWS = (MU, SIGMA)
"""The parameters of a question about the law of one gradient."""

AB = path_word(["a", "b"])
"""E X, the alignment of the two means; ||mu||^2 in the same-law case."""
BSB = path_word(["b", "S", "b"])
ATA = path_word(["a", "T", "a"])
TR_ST = cycle_word(["S", "T"])
ENERGY = Word("||mu||", r"\lVert\mu\rVert", positive=True) ** 2
QUADRATIC = Word("mu'Sigma mu", r"\mu^{\top}\Sigma\mu", positive=True)
TRACE_SQUARED = Word("tr[Sigma^2]", r"\operatorname{tr}\left(\Sigma^2\right)", positive=True)


def expected_alignment(inputs: Mapping[str, Any]) -> float | None:
    """a'b in floating point, from admitted inputs; None where the laws are not among them."""
    a, b = inputs.get("mu"), inputs.get("mu_test")
    if a is None:
        return None
    b = a if b is None else b
    size = max(len(a), len(b))
    a, b = (v if len(v) == size else [v[0]] * size for v in (a, b))
    return float(sum(float(x) * float(y) for x, y in zip(a, b, strict=False)))


def _aligned(inputs: Mapping[str, Any]) -> bool | None:
    value = expected_alignment(inputs)
    return None if value is None else value > 0


INDEPENDENT = Assumption(
    "independent_draws", "the M + K gradients are drawn independently, each sample from its own law"
)
SECOND_MOMENTS = Assumption(
    "finite_second_moments", "the gradients have finite second moments; nothing else of their law is used"
)
ALIGNED = Assumption(
    "positive_expected_alignment",
    "the mean alignment a'b (||mu||^2 in the same-law case) is positive",
    _aligned,
    otherwise="the bound is 1: it says nothing",
)
GAUSSIAN = Assumption("gaussian_gradients", "the gradients are Gaussian")
SUB_GAUSSIAN = Assumption(
    "sub_gaussian_proxy", "E exp(w'(q - E q)) <= exp(w'Sigma w/2) for every w: Gaussian, or Sigma a variance proxy"
)
