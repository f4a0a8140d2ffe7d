"""Spiked-matrix numbers: references, two routes, simulated matrices with the conventions pinned, inversion, refusals."""

from fractions import Fraction

import numpy as np
import pytest

from numerics import admit, predict
from numerics.spiked import overlaps_of, strength_of
from numerics.statement import evaluate_statement
from theory import InputError, topic


def number(id, **inputs):
    return float(predict(id, inputs))


@pytest.mark.parametrize(
    ("id", "inputs", "digits"),
    [
        ("spiked.location", {"theta": "1.2", "ratio": "0.5"}, "3.2872222222222222"),
        ("spiked.overlap_rows", {"theta": "1.2", "ratio": "0.5"}, "0.44785974499089253188"),
        ("spiked.overlap_columns", {"theta": "1.2", "ratio": "0.5"}, "0.56328751431844215349"),
        ("spiked.location", {"theta": "sqrt(2)", "ratio": "1/4"}, "3.375"),  # theta = 2 ratio^(1/4), also below
        ("spiked.overlap_rows", {"theta": "sqrt(2)", "ratio": "1/4"}, "0.625"),
        ("spiked.location", {"theta": 2, "ratio": 1}, "6.25"),
        ("spiked.covariance_location", {"ell": 3, "ratio": "0.5"}, "3.75"),
        ("spiked.covariance_overlap", {"ell": 3, "ratio": "0.5"}, "0.7"),
        ("spiked.covariance_location", {"ell": 5, "ratio": 2}, "7.5"),
    ],
)
def test_reference_numbers(id, inputs, digits):
    found = predict(id, inputs, digits=25).value
    assert abs(Fraction(found.midpoint) - Fraction(digits)) <= Fraction(10) ** -(
        len(digits.split(".")[1]) if len(digits) > 12 else 24
    )


def test_two_routes_agree_at_random_inputs():
    rng = np.random.default_rng(2)
    for known in topic("spiked"):
        for _ in range(30):
            inputs = {
                "ratio": Fraction(int(rng.integers(1, 64)), 16),
                "theta": Fraction(int(rng.integers(1, 48)), 16),
                "ell": Fraction(int(rng.integers(1, 96)), 16),
            }
            given = {name: value for name, value in inputs.items() if any(p.name == name for p in known.parameters)}
            for digits in (15, 40):
                value = predict(known.id, given, digits=digits).value
                other = Fraction(str(evaluate_statement(known, admit(known, given)[0], digits=digits + 10)))
                assert abs(Fraction(value.midpoint) - other) <= Fraction(value.radius) + Fraction(10) ** -(
                    digits + 5
                ), (known.id, given)


def spiked(n, p, theta, rng, u, v):
    return rng.normal(0, n**-0.5, (n, p)) + theta * np.outer(u, v)


@pytest.mark.parametrize(("n", "p", "theta"), [(600, 200, 1.3), (240, 480, 1.9)])
def test_location_and_overlaps_of_simulated_spikes(n, p, theta):
    """Noise of variance 1/rows; u as long as there are rows. The exchanged overlaps and 1/ratio are many errors away."""
    rng = np.random.default_rng(11)
    u, v = np.eye(n)[0], np.ones(p) / p**0.5
    seen = []
    for _ in range(16):
        left, values, right = np.linalg.svd(spiked(n, p, theta, rng, u, v), full_matrices=False)
        seen.append((values[0] ** 2, (left[:, 0] @ u) ** 2, (right[0] @ v) ** 2))
    seen = np.array(seen)
    mean, error = seen.mean(0), seen.std(0, ddof=1) / 4
    law = {"theta": theta, "ratio": Fraction(p, n)}
    right = np.array([number(f"spiked.{name}", **law) for name in ("location", "overlap_rows", "overlap_columns")])
    bias = 3 / min(n, p)  # finite size, of order 1/rows
    assert (np.abs(mean - right) < 4 * error + bias).all(), (mean, right, error)
    assert (np.abs(mean - right[[0, 2, 1]])[1:] > 4 * error[1:] + bias).all()
    upside_down = number("spiked.location", theta=theta, ratio=Fraction(n, p))
    assert abs(mean[0] - upside_down) > 8 * error[0] + bias


def test_field_report_21():
    """400 x 200 noise: no outlier at theta = .8 < .841, where the top eigenvalue stays below the edge; formulas above."""
    assert number("spiked.threshold", ratio="1/2") == pytest.approx(0.8409, abs=5e-5)
    assert [round(number("spiked.location", theta=t, ratio="0.5"), 3) for t in ("1.2", "1.5", "2.5")] == [
        3.287,
        3.972,
        7.83,
    ]
    rng = np.random.default_rng(4)
    u, v = np.eye(400)[0], np.eye(200)[0]
    for theta, size in ((0.8, 24), (1.2, 24), (2.5, 24)):
        top = np.array([np.linalg.norm(spiked(400, 200, theta, rng, u, v), 2) ** 2 for _ in range(size)])
        error = top.std(ddof=1) / size**0.5
        if theta == 0.8:
            assert top.mean() + 3 * error < number("spiked.location", theta="0.8", ratio="0.5")
        else:
            assert abs(top.mean() - number("spiked.location", theta=theta, ratio="0.5")) < 4 * error + 3 / 200


def test_a_population_eigenvalue_below_one_leaves_downwards():
    rng = np.random.default_rng(9)
    n, p, ell = 800, 200, 0.2
    scale = np.ones(p)
    scale[0] = ell**0.5
    low, overlap = [], []
    for _ in range(12):
        X = rng.normal(size=(n, p)) * scale
        values, vectors = np.linalg.eigh(X.T @ X / n)
        low.append(values[0])
        overlap.append(vectors[0, 0] ** 2)
    for seen, id in ((low, "spiked.covariance_location"), (overlap, "spiked.covariance_overlap")):
        assert abs(np.mean(seen) - number(id, ell="0.2", ratio="0.25")) < 4 * np.std(seen, ddof=1) / 12**0.5 + 2 / p
    assert number("spiked.covariance_location", ell="0.2", ratio="0.25") < 0.25


def test_the_threshold_itself():
    """Decided exactly for rational input: theta = ratio^(1/4) and ell = 1 + sqrt(ratio) are not above it."""
    assert predict("spiked.location", {"theta": "1/2", "ratio": "1/16"}).value.midpoint == Fraction("1.5625")
    assert predict("spiked.overlap_rows", {"theta": "1/2", "ratio": "1/16"}).value.midpoint == 0
    assert predict("spiked.covariance_overlap", {"ell": "1.5", "ratio": "1/4"}).value.midpoint == 0
    assert predict("spiked.overlap_rows", {"theta": 0, "ratio": 2}).value.midpoint == 0
    told = [
        {each["name"]: each["holds"] for each in predict("spiked.threshold", inputs).assumptions}["above_threshold"]
        for inputs in ({"ratio": "1/16"}, {"ratio": "1/16", "theta": "0.6"}, {"ratio": "1/16", "theta": "0.4"})
    ]
    assert told == [None, True, False]
    told = predict("spiked.covariance_threshold", {"ratio": "1/16", "ell": 1}).assumptions[-1]
    assert told["holds"] is False
    assert "edge" in told["otherwise"]


def test_strength_inverts_location():
    for ratio in (0.1, 1.0, 3.7):
        theta = np.linspace(1.05, 4, 20) * ratio**0.25
        location = [number("spiked.location", theta=float(t), ratio=ratio) for t in theta]
        np.testing.assert_allclose(strength_of(location, ratio), theta, rtol=1e-13)
        rows, columns = overlaps_of(theta, ratio)
        np.testing.assert_allclose(
            rows, [number("spiked.overlap_rows", theta=float(t), ratio=ratio) for t in theta], rtol=1e-12
        )
        np.testing.assert_allclose(
            columns, [number("spiked.overlap_columns", theta=float(t), ratio=ratio) for t in theta], rtol=1e-12
        )
    with pytest.raises(InputError, match="at or below the upper edge 4"):
        strength_of(3.9, 1.0)
    with pytest.raises(InputError, match="at or below the upper edge"):
        strength_of([6.0, 0.01], 0.25)  # below the lower edge the equation has a root as well


@pytest.mark.parametrize(
    ("id", "inputs", "message"),
    [
        ("spiked.location", {"theta": -1, "ratio": 1}, "theta must be a real number >= 0"),
        ("spiked.location", {"theta": 1, "ratio": 0}, "ratio must be a real number > 0"),
        ("spiked.covariance_location", {"ell": 0, "ratio": 1}, "ell must be a real number > 0"),
        ("spiked.location", {"ratio": 1}, "needs theta"),
    ],
)
def test_refusals(id, inputs, message):
    with pytest.raises(InputError, match=message):
        predict(id, inputs)
