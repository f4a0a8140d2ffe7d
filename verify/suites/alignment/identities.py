"""Algebra: every closed form is derived, and evaluated by two routes; the properties that follow from it hold."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from numerics.statement import evaluate_statement
from theory import topic

from ...claim import Case, Claim, claim
from ...controls import factor, inverse, replaced, restated, word_replaced
from ...derived import derivations
from ...routes import Routes
from ...search import Evaluate, Property

DERIVATIONS = derivations("alignment")

FLOATING = ("gaussian", "chernoff", "bernstein", "edgeworth")
"""Ids whose statements are integrals or minima: their second routes are in `gaussian`."""


def _statement(case: Case, digits: int) -> Any:
    value = evaluate_statement(case.formula, case._admitted, digits=digits + 5)
    # Where the mean alignment is not positive the bounds are 1 by convention; the statement knows nothing of it.
    aligned = next(
        (each for each in case.prediction().assumptions if each["name"] == "positive_expected_alignment"), None
    )
    return 1 if aligned is not None and aligned["holds"] is False else value


ROUTES = [
    Claim(
        id=f"alignment.two_routes/{each.name}",
        statement=f"{each.id} in exact arithmetic equals its symbolic statement evaluated with mpmath, at random laws.",
        rule=Routes(),
        measure=_statement,
        controls=(factor(2), inverse()),
        formula=each,
    )
    for each in topic("alignment")
    if each.name not in FLOATING
]


def _laws(sizes: int = 2) -> dict[str, Any]:
    """Strategies: two laws of one dimension (means and factors of covariances, in sixteenths), and sample sizes."""
    from hypothesis import strategies as st

    def build(dimension: int) -> Any:
        entries = st.integers(-8, 8)
        vector = st.lists(entries, min_size=dimension, max_size=dimension)
        square = st.lists(vector, min_size=dimension, max_size=dimension)
        return st.tuples(vector, square, vector, square)

    return {
        "laws": st.integers(1, 4).flatmap(build),
        **{name: st.integers(1, 200) for name in ("M", "K")[:sizes]},
    }


def _inputs(laws: Any, M: int, K: int) -> dict[str, Any]:
    a, A, b, B = laws
    return {"mu": _sixteenths(a), "Sigma": _gram(A), "mu_test": _sixteenths(b), "Sigma_test": _gram(B), "M": M, "K": K}


def _sixteenths(vector: Any) -> list[Fraction]:
    return [Fraction(entry, 16) for entry in vector]


def _gram(factor: Any) -> list[list[Fraction]]:
    return [[Fraction(sum(x * y for x, y in zip(r, s, strict=True)), 64) for s in factor] for r in factor]


@claim(
    "alignment.bound_exact",
    rule=Property(_laws),
    controls=[
        factor(2),
        restated("M + K for MK in the variance", lambda case: case.value(M=min(case.M, 1))),
        restated("1 - bound", lambda case: 1 - case.value()),
    ],
)
def bounds_are_ordered(evaluate: Evaluate, laws: Any, M: int, K: int) -> None:
    """0 <= bound_exact <= bound <= 1, and bound is at most M + K + 1 times bound_exact."""
    inputs = _inputs(laws, M, K)
    exact, simple = evaluate("alignment.bound_exact", **inputs), evaluate("alignment.bound", **inputs)
    slack = 1e-13
    assert 0 <= exact <= simple * (1 + slack) <= 1 + 2 * slack, f"bound_exact {exact}, bound {simple}"
    assert simple <= (M + K + 1) * exact * (1 + slack), f"bound {simple} is more than M+K+1 times {exact}"


@claim(
    "alignment.bound_exact",
    rule=Property(_laws),
    controls=[
        replaced("K", 1, "K forgotten"),
        restated("M counted twice", lambda case: case.value(M=2 * case.M)),
        restated("test covariance taken for both", lambda case: case.value(Sigma=case["Sigma_test"])),
    ],
)
def training_and_test_are_symmetric(evaluate: Evaluate, laws: Any, M: int, K: int) -> None:
    """Exchanging the training law and M with the test law and K leaves the certificate as it is."""
    a, A, b, B = laws
    one = evaluate("alignment.bound_exact", **_inputs(laws, M, K))
    other = evaluate("alignment.bound_exact", **_inputs((b, B, a, A), K, M))
    assert abs(one - other) <= 1e-13 * max(one, other), f"{one} and {other}"


@claim(
    "alignment.bound_exact",
    rule=Property(_laws),
    controls=[
        word_replaced("tr[ST]", lambda case: case.M**2 * case.K, "tr[ST] multiplied instead of divided"),
        restated("M and K inverted", lambda case: case.value(M=201 - case.M, K=201 - case.K)),
    ],
)
def more_samples_never_hurt(evaluate: Evaluate, laws: Any, M: int, K: int) -> None:
    """The certificate does not grow with M, nor with K."""
    here = evaluate("alignment.bound_exact", **_inputs(laws, M, K))
    for M_more, K_more in ((M + 1, K), (M, K + 1)):
        more = evaluate("alignment.bound_exact", **_inputs(laws, min(M_more, 200), min(K_more, 200)))
        assert more <= here * (1 + 1e-13), f"{here} grew to {more} at M={M_more}, K={K_more}"


@claim(
    "alignment.bound_exact",
    rule=Property(_laws),
    controls=[
        word_replaced("a'b", lambda case: float(abs(case.mu).sum() * abs(case.mu_test).sum()), "|a|_1 |b|_1 for a'b"),
        word_replaced(
            "tr[ST]",
            lambda case: float((case.covariance("Sigma") * case.covariance("Sigma_test")).max()),
            "largest entry for tr[ST]",
        ),
    ],
)
def rotations_and_scales_are_invisible(evaluate: Evaluate, laws: Any, M: int, K: int) -> None:
    """The certificate is the same for c O q with O orthogonal and c not 0, and for q padded by zeros."""
    a, A, b, B = laws
    one = evaluate("alignment.bound_exact", **_inputs(laws, M, K))
    turned = evaluate("alignment.bound_exact", **_inputs((_turn(a), _turn_rows(A), _turn(b), _turn_rows(B)), M, K))
    assert abs(one - turned) <= 1e-13 * max(one, turned), f"{one}, rotated and scaled {turned}"


def _turn(vector: Any) -> list[int]:
    """10 times a rotation by the angle of the 3-4-5 triangle in the plane of the first entry and a padded one."""
    return [6 * vector[0], *[10 * entry for entry in vector[1:]], 8 * vector[0]]


def _turn_rows(factor: Any) -> list[list[int]]:
    """The same acting on the columns of A, so that A A' is turned on both sides; one zero column keeps it square."""
    columns = [_turn(column) for column in zip(*factor, strict=True)] + [[0] * (len(factor) + 1)]
    return [list(row) for row in zip(*columns, strict=True)]


@claim(
    "alignment.bound_exact",
    rule=Property(lambda: _laws() | {"batch": _batch()}),
    controls=[
        restated("bound by n_eff and d_align", lambda case: Case("alignment.bound", case.inputs).value()),
        word_replaced("tr[ST]", 0),
    ],
)
def batches_may_be_merged(evaluate: Evaluate, laws: Any, M: int, K: int, batch: int) -> None:
    """M and K batch means with covariances divided by the batch size are as good as M and K times as many samples."""
    inputs = _inputs(laws, M, K)
    merged = inputs | {n: [[x / batch for x in row] for row in inputs[n]] for n in ("Sigma", "Sigma_test")}
    one = evaluate("alignment.bound_exact", **merged)
    other = float(Case("alignment.bound_exact", inputs | {"M": M * batch, "K": K * batch}).value())
    assert abs(one - other) <= 1e-13 * max(one, other), f"merged {one}, raw {other}"


def _batch() -> Any:
    from hypothesis import strategies as st

    return st.integers(2, 16)


def _counts() -> dict[str, Any]:
    from hypothesis import strategies as st

    return {"M": st.integers(1, 10**6), "K": st.integers(1, 10**6)}


@claim(
    "alignment.n_eff",
    rule=Property(_counts),
    controls=[
        restated("harmonic sum without 1/(MK), doubled", lambda case: 2 * case.M * case.K / (case.M + case.K)),
        restated("smaller of M and K", lambda case: float(min(case.M, case.K))),
    ],
)
def effective_size_is_below_both(evaluate: Evaluate, M: int, K: int) -> None:
    """n_eff is smaller than M and than K, symmetric, and grows strictly with each."""
    here = evaluate("alignment.n_eff", M=M, K=K)
    assert here < min(M, K), f"n_eff {here}"
    assert abs(here - evaluate("alignment.n_eff", M=K, K=M)) <= 1e-13 * here
    assert evaluate("alignment.n_eff", M=M * 2, K=K) > here


def _targets() -> dict[str, Any]:
    from hypothesis import strategies as st

    return {"dimension": st.integers(1, 10**4), "percent": st.integers(1, 99), "M": st.integers(1, 500)}


@claim(
    "alignment.samples_needed",
    rule=Property(_targets),
    controls=[
        restated("one too few", lambda case: max(1.0, case.value() - 1)),
        restated("one too many", lambda case: case.value() + 1),
        restated("1 dropped from n_eff", lambda case: float(-(-2 * (1 - case.delta) // (case.delta * case.d_align)))),
    ],
)
def samples_needed_are_least(evaluate: Evaluate, dimension: int, percent: int, M: int) -> None:
    """With the samples needed the bound is at most delta, and with one sample less it is not."""
    d, delta = Fraction(dimension, 100), Fraction(percent, 100)
    needed = int(evaluate("alignment.samples_needed", d_align=d, delta=delta))
    exact = lambda count: 1 / (1 + Fraction(count * count, 2 * count + 1) * d)  # noqa: E731
    assert needed >= 1
    assert exact(needed) <= delta, f"{needed} samples leave {float(exact(needed))}"
    assert needed == 1 or exact(needed - 1) > delta, f"{needed - 1} samples would do"


@claim(
    "alignment.test_samples_needed",
    rule=Property(_targets),
    controls=[
        restated("one too many", lambda case: case.value() + 1),
        restated("existence not checked", lambda case: case.value() if case.value() != float("inf") else 1.0),
    ],
)
def test_samples_needed_are_least(evaluate: Evaluate, dimension: int, percent: int, M: int) -> None:
    """Given M, the test samples needed are the least that bring the bound to delta; inf exactly where none do."""
    d, delta = Fraction(dimension, 100), Fraction(percent, 100)
    needed = evaluate("alignment.test_samples_needed", d_align=d, delta=delta, M=M)
    exact = lambda count: 1 / (1 + Fraction(M * count, M + count + 1) * d)  # noqa: E731
    if needed == float("inf"):
        assert 1 / (1 + M * d) >= delta, "the bound at K = inf would do"
    else:
        count = int(needed)
        assert exact(count) <= delta, f"{count} samples leave {float(exact(count))}"
        assert count == 1 or exact(count - 1) > delta, f"{count - 1} samples would do"
