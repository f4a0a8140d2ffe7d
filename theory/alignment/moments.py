"""Mean, variance and Gaussian cumulants of the alignment X = mu_M . g_K."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sympy import Expr, Symbol, expand

from ..cumulants import contraction, cumulant_of_mean, cumulant_pairs, kappa
from ..formula import DERIVED_HERE, Axiom, Derivation, Formula
from . import words as w

__all__ = ["FOURTH_CUMULANT", "MEAN", "THIRD_CUMULANT", "VARIANCE"]

M, K = w.M.symbol, w.K.symbol

INDEPENDENCE = Axiom(
    "independent draws",
    "kappa_r of a mean of n independent draws is kappa_r / n^(r-1); the rival forgets to divide the sum by n",
    lambda size: size - 1,
    lambda size: -1,
)
CONNECTED = Axiom(
    "connected pairs",
    "a joint cumulant keeps the pairs of partitions whose join is one block; the rival keeps all, and so is a moment",
    True,
    False,
)
TWO_LAWS = Axiom(
    "two laws",
    "M draws have mean a and covariance S, K draws b and T; the rival exchanges the sample sizes",
    False,
    True,
)
NO_SKEWNESS = Axiom(
    "Gaussian draws", "the third cumulant of a Gaussian gradient vanishes; the rival keeps it", True, False
)
AXIOMS = (INDEPENDENCE, CONNECTED, TWO_LAWS, NO_SKEWNESS)


def _cumulant(order: int) -> Callable[[Mapping[str, Any]], Derivation]:
    def prove(known: Mapping[str, Any]) -> Derivation:
        # An axiom that a formula does not list cannot be broken in it: the mean is the same whatever the sample sizes.
        divisor, connected, exchanged, gaussian = (known.get(axiom.name, axiom.value) for axiom in AXIOMS)
        sizes = (K, M) if exchanged else (M, K)
        d = Derivation()
        for r in range(1, order + 1):
            d.step(
                f"index coincidences of M independent draws, order {r}",
                Symbol(f"kappa_{r}(mu_M)"),
                cumulant_of_mean(r, M),
            )
        if order <= 2:  # orders 3 and 4 have 15 and 119 pairs: only their sum is shown
            for number, (left, right) in enumerate(cumulant_pairs(order), 1):
                term = contraction(left, right)
                for count, part in zip(sizes, (left, right), strict=True):
                    for block in part:
                        term *= count ** -divisor(len(block))
                why = f"training slots grouped as {_braces(left)}, test slots as {_braces(right)}"
                d.step(why, Symbol(f"term {number}"), term)
        total = kappa(order, *sizes, gaussian=gaussian, divisor=divisor, connected=connected)
        d.step("sum over the pairs of partitions", Symbol(f"kappa_{order}(X)"), total)
        return d

    return prove


def _braces(partition: list[list[int]]) -> str:
    return " ".join("{" + ",".join(str(edge + 1) for edge in block) + "}" for block in partition)


def variance_of(aTa: Any, bSb: Any, tr_st: Any, over_m: Any, over_k: Any) -> Any:
    """Var X from the three words and the reciprocals 1/M, 1/K; works on symbols and on numbers alike."""
    return bSb * over_m + aTa * over_k + tr_st * over_m * over_k


def _variance() -> Expr:
    return variance_of(w.ATA, w.BSB, w.TR_ST, 1 / M, 1 / K)


def _third() -> Expr:
    return 6 * w.Word("b'STa", r"b^{\top} S T a") / (M * K)


def _fourth() -> Expr:
    bSTSb = w.Word("b'STSb", r"b^{\top} S T S b")
    aTSTa = w.Word("a'TSTa", r"a^{\top} T S T a")
    trace = w.Word("tr[(ST)^2]", r"\operatorname{tr}\left((ST)^{2}\right)")
    return expand(12 * bSTSb / (M**2 * K) + 12 * aTSTa / (M * K**2) + 6 * trace / (M * K) ** 2)


_CONVENTIONS = (
    "per sample: Sigma is the covariance of one gradient, not of a batch mean; mu_M averages M training gradients, "
    "g_K averages K test gradients, and X is their plain inner product, not divided by the dimension"
)
_ANY_LAW = (w.INDEPENDENT, w.SECOND_MOMENTS)

MEAN = Formula(
    id="alignment.mean",
    title="mean of the alignment",
    symbol="E X",
    parameters=w.PAIR,
    assumptions=_ANY_LAW,
    conventions=_CONVENTIONS,
    source=w.SEED,
    state=lambda: w.AB,
    prove=_cumulant(1),
    axioms=(INDEPENDENCE,),
    example=w.EXAMPLE,
)
VARIANCE = Formula(
    id="alignment.variance",
    title="variance of the alignment",
    symbol="Var X",
    parameters=w.PAIR,
    assumptions=_ANY_LAW,
    conventions=_CONVENTIONS,
    source=w.SEED,
    state=_variance,
    prove=_cumulant(2),
    axioms=(INDEPENDENCE, CONNECTED, TWO_LAWS),
    example=w.EXAMPLE,
)
THIRD_CUMULANT = Formula(
    id="alignment.third_cumulant",
    title="third cumulant of the alignment, Gaussian gradients",
    symbol="kappa_3(X)",
    parameters=w.PAIR,
    assumptions=(w.INDEPENDENT, w.GAUSSIAN),
    conventions=_CONVENTIONS,
    source=DERIVED_HERE,
    state=_third,
    prove=_cumulant(3),
    axioms=(INDEPENDENCE, CONNECTED, NO_SKEWNESS),
    example=w.EXAMPLE,
)
FOURTH_CUMULANT = Formula(
    id="alignment.fourth_cumulant",
    title="fourth cumulant of the alignment, Gaussian gradients",
    symbol="kappa_4(X)",
    parameters=w.PAIR,
    assumptions=(w.INDEPENDENT, w.GAUSSIAN),
    conventions=_CONVENTIONS,
    source=DERIVED_HERE,
    state=_fourth,
    prove=_cumulant(4),
    axioms=(INDEPENDENCE, CONNECTED, TWO_LAWS),
    example=w.EXAMPLE,
)
