"""Numbers of the path catalogue: the notes' references, two routes on random networks, Monte Carlo, and what is refused."""

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from numerics import admit, predict
from numerics.path import Chain, solve
from numerics.statement import evaluate_statement
from theory import InputError, formula, topic
from theory.path.random_init import expected_g


def value(id, digits=15, **inputs):
    return predict(id, inputs, digits=digits).value


def draw(rng, depth=None):
    depth = int(rng.integers(1, 6)) if depth is None else depth
    biases = str(rng.choice(["none", "hidden", "all"]))
    biased = {"none": 0, "hidden": depth - 1, "all": depth}[biases]
    inputs = {
        "widths": ",".join(map(str, rng.integers(1, 12, depth + 1))),
        "weight_variance": ",".join(f"{k}/16" for k in rng.integers(1, 20, depth)),
        "biases": biases,
    }
    if biased:
        inputs["bias_variance"] = ",".join(f"{k}/16" for k in rng.integers(0, 9, biased))
    return inputs, depth, biased


def test_reference_12_and_10_and_11():
    he = {"widths": "50,30,80,20,10", "weight_variance": "2/50,2/30,2/80,2/20"}
    zeta = value("path.mean_field_rescaling", **he).midpoint
    assert [float(each) for each in zeta] == pytest.approx([-0.13081204, -1.24245332, -0.96780025], abs=5e-9)
    gaps = value("path.mean_field_gap", **he).midpoint
    assert float(gaps["before"]) == pytest.approx(0.20655095004927837, abs=1e-15)
    assert gaps["after"] == 0
    n, s = [50, 30, 80, 20, 10], [2 / 50, 2 / 30, 2 / 80, 2 / 20]
    ends = [0, *map(float, zeta), 0]
    norms = [n[k] * n[k + 1] * s[k] * math.exp(ends[k + 1] - ends[k]) for k in range(4)]
    assert norms == pytest.approx([52.64296052] * 4, rel=1e-9)

    small = {"widths": "100,100,100,100,100", "weight_variance": "1e-4", "biases": "hidden"}
    zeta = value("path.mean_field_rescaling", **small).midpoint
    assert [float(each) for each in zeta] == pytest.approx([0.79182225, 1.69818494, 2.32657734], abs=5e-9)
    gaps = value("path.mean_field_gap", **small).midpoint
    assert float(gaps["before"]) == pytest.approx(3.226007543843764, abs=1e-14)
    assert float(gaps["after"]) == pytest.approx(1.6558449793530912, abs=1e-14)
    diagonal = value("path.expected_diagonal", **small).midpoint
    every = [float(each) for part in diagonal.values() for each in part]
    assert max(every) / min(every) == pytest.approx(1e4)

    one = {"widths": "20,50,10", "weight_variance": "0.1,0.04", "bias_variance": "0.01,0", "biases": "all"}
    found = value("path.mean_field_rescaling", digits=30, **one).midpoint[0]
    assert float(found) == pytest.approx(-0.8075123587966645, abs=1e-15)
    m1, beta1, p = Fraction(201, 100), Fraction(4, 10), 20 * 50 + 50 + 500 + 10
    # One hidden layer is one coordinate: x = e^zeta solves (p+A) B x^2 + A D x + (A-p) C = 0.
    update = value(
        "path.coordinate_update", digits=30, incoming=50 * 21 * beta1, outgoing=50 * 10 * m1, rest=10,
        fan_in=50 * 21, fan_out=500, parameters=p,
    ).midpoint  # fmt: skip
    assert abs(found - update) < Fraction(1, 10**28)


@pytest.mark.parametrize(
    ("scale", "before", "after"),
    [
        ("1e-3", 7.767, 3.880),
        ("1e-2", 3.226, 1.656),
        ("0.1", 0.2203, 0.1742),
        ("0.5", 0.00472, 0.00459),
        ("2", 0.00205, 0.00204),
    ],
)
def test_the_table_of_small_variances(scale, before, after):
    """Section 4 of the notes, to the digits printed there."""
    network = {"widths": "100,100,100,100,100", "weight_variance": str(Fraction(scale) / 100), "biases": "hidden"}
    gaps = value("path.mean_field_gap", **network).midpoint
    assert float(gaps["before"]) == pytest.approx(before, rel=2e-3)
    assert float(gaps["after"]) == pytest.approx(after, rel=2e-3)
    alone = value("path.small_variance_gap", digits=25, width=100, layers=4, scale=scale)
    again = value("path.mean_field_gap", digits=25, **network)
    assert abs(alone.midpoint - again.midpoint["before"]) <= alone.radius + again.radius["before"]


def test_an_output_bias_kills_the_benefit_and_equal_g_leave_no_gap():
    network = {"widths": "100,100,100,100,100", "weight_variance": "1e-4", "biases": "all"}
    gaps = value("path.mean_field_gap", **network).midpoint
    assert (float(gaps["before"]), float(gaps["after"])) == pytest.approx((7.756, 7.741), abs=5e-4)
    equal = {"widths": "7,7,7", "weight_variance": "1/7", "biases": "hidden"}
    assert value("path.mean_field_gap", **equal).to_dict()["value"] == {"before": "0", "after": "0"}
    assert value("path.mean_field_rescaling", **equal).to_dict()["value"] == ["0"]


def test_expected_diagonal_is_the_count_of_paths_on_30_random_networks():
    """Recursion over rationals against the symbolic sum over path starts, at any depth and both precisions."""
    rng = np.random.default_rng(11)
    for _ in range(30):
        inputs, depth, biased = draw(rng)
        weights, biases = expected_g(depth, inputs["biases"])
        known = formula("path.expected_diagonal")
        admitted, _ = admit(known, inputs)
        for digits in (15, 30):
            found = value("path.expected_diagonal", digits=digits, **inputs)
            assert (len(found.midpoint["weights"]), len(found.midpoint["biases"])) == (depth, biased)
            for name, expressions in (("weights", weights), ("biases", biases)):
                other = evaluate_statement(known, admitted, expression=tuple(expressions), digits=digits + 5)
                for a, r, b in zip(found.midpoint[name], found.radius[name], other, strict=True):
                    assert abs(Fraction(str(b)) - Fraction(a)) <= Fraction(r) + abs(Fraction(a)) / 10 ** (digits + 2)


def test_the_statements_of_rescaling_and_gap_are_their_values_at_three_matrices():
    rng = np.random.default_rng(12)
    for _ in range(10):
        inputs, *_ = draw(rng, depth=3)
        inputs = {name: inputs[name] for name in ("widths", "weight_variance")}
        admitted, _ = admit(formula("path.mean_field_gap"), inputs)
        gap = value("path.mean_field_gap", digits=30, **inputs)
        other = evaluate_statement(formula("path.mean_field_gap"), admitted, digits=40)
        assert abs(Fraction(str(other)) - Fraction(gap.midpoint["before"])) <= Fraction(
            gap.radius["before"]
        ) + Fraction(1, 10**38)
        zeta = value("path.mean_field_rescaling", digits=30, **inputs)
        others = evaluate_statement(formula("path.mean_field_rescaling"), admitted, digits=40)
        for a, r, b in zip(zeta.midpoint, zeta.radius, others, strict=True):
            assert abs(Fraction(str(b)) - Fraction(a)) <= Fraction(r) + Fraction(1, 10**38)


def test_the_rescaling_with_biases_is_the_minimiser_by_a_rival_method():
    """Balls by interval Newton against mpmath's root finder on the criterion written from its definition."""
    rng = np.random.default_rng(13)
    for _ in range(8):
        inputs, depth, _ = draw(rng, depth=int(rng.integers(2, 5)))
        n = [int(each) for each in inputs["widths"].split(",")]
        diagonal = value("path.expected_diagonal", digits=40, **inputs).midpoint
        with mpmath.workdps(40):
            entries = [(k, k + 1, n[k] * n[k + 1], mpmath.mpf(str(g))) for k, g in enumerate(diagonal["weights"])]
            entries += [(0, k + 1, n[k + 1], mpmath.mpf(str(g))) for k, g in enumerate(diagonal["biases"])]

            def slope(*zeta, entries=entries, depth=depth):
                at = [0, *zeta, 0]
                masses = [c * g * mpmath.exp(at[i] - at[o]) for i, o, c, g in entries]
                total, p = mpmath.fsum(masses), sum(c for *_, c, _ in entries)
                return [
                    mpmath.fsum(
                        (m / total - mpmath.mpf(c) / p) * ((i == k) - (o == k))
                        for (i, o, c, _), m in zip(entries, masses, strict=True)
                    )
                    for k in range(1, depth)
                ]

            found = value("path.mean_field_rescaling", digits=30, **inputs)
            root = mpmath.findroot(slope, [float(each) for each in found.midpoint], tol=1e-60, verify=False)
            for a, r, b in zip(found.midpoint, found.radius, root, strict=True):
                assert abs(mpmath.mpf(str(a)) - b) <= mpmath.mpf(str(r)) + mpmath.mpf(10) ** -36
                # Far from it the slope is not small: the root is a root because of the criterion.
            assert max(abs(each) for each in slope(*(each + 1e-6 for each in root))) > 1e-12


def test_gap_and_condition_bound_by_another_route():
    rng = np.random.default_rng(14)
    for _ in range(30):
        g = [f"{k}/16" for k in rng.integers(1, 60, rng.integers(2, 7))]
        numbers = np.array([float(Fraction(each)) for each in g])
        found = value("path.gap", diagonal=",".join(g))
        assert float(found) == pytest.approx(math.log(numbers.mean()) - np.log(numbers).mean(), abs=1e-14)
        admitted, _ = admit(formula("path.gap"), {"diagonal": ",".join(g)})
        statement = evaluate_statement(formula("path.gap"), admitted, digits=30)
        assert abs(float(statement) - float(found)) < 1e-15
        bound = float(value("path.condition_bound", gap=str(found.midpoint), parameters=len(g)))
        assert bound >= numbers.max() / numbers.min() * (1 - 1e-12)
    with pytest.raises(InputError, match="bounds nothing"):
        value("path.condition_bound", gap="1", parameters=10**6)


@pytest.mark.slow
def test_the_mean_over_random_networks_is_the_expected_diagonal():
    """3000 networks: 8 standard errors leave room for 26 means, and none for a forgotten width (a factor of 3 or more)."""
    rng = np.random.default_rng(15)
    widths, s, t = [6, 9, 4, 7, 3], [0.2, 0.1, 0.3, 0.15], [0.05, 0.02, 0.1, 0]
    weights, biases = [], []
    for _ in range(3000):
        W = [rng.uniform(-1, 1, (n, m)) * math.sqrt(3 * v) for (m, n), v in zip(pairwise(widths), s, strict=True)]
        b = [rng.standard_normal(n) * math.sqrt(v) for n, v in zip(widths[1:], t, strict=True)]
        b[-1] = None
        chain = Chain.of(W, b)
        m, beta = ([np.exp(each) for each in logs] for logs in (chain.log_m, chain.log_beta))
        weights.append([np.outer(y, x).mean() for x, y in zip(m, beta, strict=True)])
        biases.append([each.mean() for each in beta])
    expected = predict(
        "path.expected_diagonal",
        {
            "widths": "6,9,4,7,3",
            "weight_variance": "0.2,0.1,0.3,0.15",
            "bias_variance": "0.05,0.02,0.1,0",
            "biases": "all",
        },
    ).value.midpoint
    for name, seen in (("weights", np.array(weights)), ("biases", np.array(biases)[:, :3])):
        mean, error = seen.mean(0), seen.std(0, ddof=1) / math.sqrt(len(seen))
        assert (np.abs(mean - np.array([float(each) for each in expected[name]])[: mean.size]) < 4 * error).all()
        assert (error < 0.02 * mean).all()


def test_finite_networks_approach_the_mean_field_rescaling():
    """Layer means of the exact minimiser at ten times the widths of reference 10; the notes saw deviations up to 0.02."""
    n = [500, 300, 800, 200, 100]
    zeta = [-0.13081204, -1.24245332, -0.96780025]
    rng = np.random.default_rng(16)
    W = [rng.standard_normal((b, a)) * math.sqrt(2 / a) for a, b in pairwise(n)]
    chain = Chain.of(W, [None] * 4)
    found = solve(chain, start=chain.start())
    means = [part.mean() for part in np.split(found.z, np.cumsum(n[1:-1])[:-1])]
    assert means == pytest.approx(zeta, abs=0.03)
    assert found.gap < 0.005 < 0.15 < found.gap_before


def test_refusals_name_the_parameter():
    good = {"widths": "3,4,2", "weight_variance": "1"}
    for change, message in (
        ({"widths": "3"}, "at least two"),
        ({"widths": "3,2.5"}, "must be integers"),
        ({"weight_variance": "1,1,1"}, "weight_variance takes one number, or one a layer, which are 2"),
        ({"weight_variance": "0"}, "weight_variance must be"),
        ({"bias_variance": "0.1"}, "biases=hidden or biases=all"),
        ({"bias_variance": "0.1,0.1", "biases": "hidden"}, "which are 1"),
        ({"biases": "some"}, "one of none, hidden, all"),
    ):
        with pytest.raises(InputError, match=message):
            value("path.expected_diagonal", **(good | change))
    with pytest.raises(InputError, match="leave -1 others"):
        value("path.coordinate_update", incoming=1, outgoing=1, rest=0, fan_in=2, fan_out=2, parameters=3)
    with pytest.raises(InputError, match="cannot sum"):
        value("path.coordinate_update", incoming=1, outgoing=1, rest=1, fan_in=2, fan_out=2, parameters=4)


def test_every_example_of_the_catalogue_evaluates():
    for each in topic("path"):
        short, long = (predict(each.id, each.example, digits=digits).value for digits in (15, 40))
        assert short.kind in ("ball", "exact")

        def apart(a, r, b):
            if isinstance(a, dict):
                return max(apart(a[name], r[name], b[name]) for name in a)
            if isinstance(a, tuple):
                return max((apart(*part) for part in zip(a, r, b, strict=True)), default=0)
            return abs(Fraction(a) - Fraction(b)) > Fraction(r) + Fraction(1, 10**35)

        assert not apart(short.midpoint, short.radius, long.midpoint), each.id
