"""Marchenko-Pastur numbers: references to all digits, two routes, the float law against certified values, conventions pinned."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from numerics import admit, predict
from numerics.mp import MarchenkoPastur
from numerics.statement import evaluate_statement
from theory import InputError, formula

RATIOS = (0.05, 0.1, 0.25, 0.5, 0.9, 0.999, 1.0, 1.001, 2.0, 4.5, 10.0, 20.0)
REFERENCES = [
    ("mp.density", {"x": 1, "ratio": "1/4"}, "0.61640444406149980556"),
    ("mp.cdf", {"x": 1, "ratio": "1/4"}, "0.55339008127533609917"),
    ("mp.cdf", {"x": 1, "ratio": 2}, "0.65915494309189533577"),
    ("mp.moment", {"order": 6, "ratio": "0.3"}, "11.47393"),
    ("mp.log_moment", {"g": 3, "ratio": "0.5"}, "1.2428758382177717887"),
    ("mp.entropy", {"ratio": "0.25"}, "0.5762529945270715653"),
    ("mp.quantile", {"probability": "0.5", "ratio": "0.5"}, "0.83046588158136355008"),
    ("mp.singular_cdf", {"s": 1, "ratio": 1}, "0.60899778104422935809"),
]


def middle(id, digits=15, **inputs):
    return Fraction(predict(id, inputs, digits=digits).value.midpoint)


@pytest.mark.parametrize(("id", "inputs", "digits"), REFERENCES)
def test_reference_numbers(id, inputs, digits):
    found = predict(id, inputs, digits=25).value
    assert abs(Fraction(found.midpoint) - Fraction(digits)) <= Fraction(10) ** -19
    assert found.kind in ("ball", "exact")


def test_reference_number_of_the_stieltjes_transform():
    found = predict("mp.stieltjes", {"z": "1+1j", "ratio": "1/4"}, digits=21).value.midpoint
    assert abs(Fraction(found["re"]) - Fraction("-0.024856610760289326644")) <= Fraction(10) ** -21
    assert abs(Fraction(found["im"]) - Fraction("0.831447540766928258")) <= Fraction(10) ** -18


def _cases():
    """Random rational inputs, ratio on both sides of 1 and equal to it, variance different from 1, points in and off the bulk."""
    rng = np.random.default_rng(1)
    for number in range(30):
        ratio = Fraction(1) if number % 10 == 0 else Fraction(int(rng.integers(1, 80)), 16)
        variance = Fraction(int(rng.integers(3, 60)), 16)
        reach = float(variance) * (1 + float(ratio) ** 0.5) ** 2
        x = Fraction(int(rng.uniform(-0.1, 1.1) * reach * 64), 64)
        yield ratio, variance, x, Fraction(int(rng.integers(1, 64)), 16), int(rng.integers(0, 9))


@pytest.mark.parametrize("digits", [15, 40])
def test_two_routes_agree_at_random_inputs(digits):
    """Ball arithmetic with the notes' arcs against the statement's half-angle form in mpmath; likewise for the rest."""
    for ratio, variance, x, g, order in _cases():
        law = {"ratio": ratio, "variance": variance}
        questions = {
            "mp.density": {"x": x},
            "mp.cdf": {"x": x},
            "mp.moment": {"order": order},
            "mp.log_moment": {"g": g},
            "mp.singular_density": {"s": g / 4},
            "mp.singular_cdf": {"s": g / 4},
            "mp.r_transform": {"g": -g},
            "mp.s_transform": {"psi": g},
        } | ({"mp.entropy": {}} if ratio <= 1 else {})
        for id, more in questions.items():
            known = formula(id)
            value = predict(id, law | more, digits=digits).value
            other = evaluate_statement(known, admit(known, law | more)[0], digits=digits + 10)
            slack = float(value.radius) + 10.0 ** -(digits + 5)
            assert abs(float(Fraction(value.midpoint) - Fraction(str(other)))) <= slack, (id, law, more)


def test_more_digits_lie_inside_the_ball_of_fewer():
    for id, inputs, _ in REFERENCES:
        few, many = (predict(id, inputs, digits=digits).value for digits in (12, 200))
        assert few.contains(Fraction(many.midpoint))
        assert Fraction(many.radius) <= abs(Fraction(many.midpoint)) / 10**199


@pytest.mark.parametrize("ratio", ["1/4", "1", "5/2"])
def test_distribution_function_against_quadrature_of_the_density(ratio):
    y, v = mpmath.mpf(Fraction(ratio).numerator) / Fraction(ratio).denominator, mpmath.mpf(3) / 2
    with mpmath.workdps(30):
        low, high = v * (1 - mpmath.sqrt(y)) ** 2, v * (1 + mpmath.sqrt(y)) ** 2
        x = mpmath.mpf(1)
        # x = low + (high - low) sin^2: no root at the ends
        angle = mpmath.asin(mpmath.sqrt((x - low) / (high - low)))

        def weight(phi):
            at = low + (high - low) * mpmath.sin(phi) ** 2
            rho = mpmath.sqrt((high - at) * (at - low)) / (2 * mpmath.pi * v * y * at)
            return rho * (high - low) * mpmath.sin(2 * phi)

        below = max(0, 1 - 1 / y) + mpmath.quad(weight, [0, angle])
        found = predict("mp.cdf", {"x": 1, "ratio": ratio, "variance": "3/2"}, digits=25).value
        assert abs(below - mpmath.mpf(str(found.midpoint))) < mpmath.mpf(10) ** -20


@pytest.mark.parametrize("ratio", ["1/3", "1", "3", "sqrt(2)"])
def test_quantile_inverts_the_distribution_function(ratio):
    for p in ("0.68", "0.9", "0.999999999999", "1e-12" if ratio != "3" else "0.7"):
        found = predict("mp.quantile", {"probability": p, "ratio": ratio, "variance": "1.75"}, digits=40).value
        back = middle("mp.cdf", 35, x=str(found.midpoint), ratio=ratio, variance="1.75")
        target = max(Fraction(p), Fraction(1) - 1 / Fraction(ratio) if ratio == "3" else Fraction(0))
        if ratio == "sqrt(2)" and float(target) < 1 - 2**-0.5:
            assert found.midpoint == 0
        else:
            assert abs(back - target) < Fraction(10) ** -30


def test_quantile_at_its_ends():
    assert predict("mp.quantile", {"probability": "3/4", "ratio": 4}).value.midpoint == 0  # the whole mass at 0
    assert middle("mp.quantile", probability="0.750001", ratio=4) > 1
    assert predict("mp.quantile", {"probability": 0, "ratio": "1/4"}).value.midpoint == Fraction("0.25")
    assert predict("mp.quantile", {"probability": 1, "ratio": "1/4", "variance": 2}).value.midpoint == Fraction("4.5")


@pytest.mark.parametrize("ratio", [1, 2, 4])
def test_ratio_of_one_and_more(ratio):
    """Field report 17: bulk min(1, 1/ratio) + mass at 0 = 1, mean = variance, no NaN anywhere."""
    law = MarchenkoPastur(ratio, 3.0)
    low, high = law.edges
    assert middle("mp.cdf", x=0, ratio=ratio, variance=3) == 1 - Fraction(1, ratio)
    assert middle("mp.moment", order=1, ratio=ratio, variance=3) == 3
    assert law.cdf(low) == law.atom == 1 - 1 / ratio
    assert law.cdf(high) == 1
    assert law.cdf(-1e-12) == 0
    draws = law.sample(20000, 5)
    assert np.isfinite(draws).all()
    assert abs(draws.mean() - 3) < 5 * draws.std() / 20000**0.5
    assert abs((draws == 0).mean() - law.atom) < 5 * (law.atom * (1 - law.atom) / 20000) ** 0.5 + 1e-12


def test_float_law_against_certified_values():
    """Stated errors: cdf 5e-16, quantile 1e-13, density 1e-15 x width over distance to the edge; worst row over 12 ratios."""
    rng = np.random.default_rng(0)
    worst = {"cdf": 0.0, "quantile": 0.0, "density": 0.0}
    for ratio in RATIOS:
        law = MarchenkoPastur(ratio)
        low, high = law.edges
        t = rng.random(30)
        x = low + (high - low) * np.concatenate([t, 1e-3 * t[:8] ** 6, 1 - 1e-3 * t[:8] ** 6])
        p = np.concatenate([t, 10.0 ** -rng.uniform(0, 15, 8), 1 - 10.0 ** -rng.uniform(0, 15, 8)])
        p = law.atom + (1 - law.atom) * p
        for point, value, rho in zip(x, law.cdf(x), law.density(x), strict=True):
            exact = middle("mp.cdf", 25, x=float(point), ratio=ratio)
            worst["cdf"] = max(worst["cdf"], abs(float(exact - Fraction(float(value)))))
            exact = middle("mp.density", 20, x=float(point), ratio=ratio)
            distance = min(point - low, high - point)
            if distance > 0 and exact > 0:
                error = abs(float(Fraction(float(rho)) / exact - 1)) * distance / (high - low)
                worst["density"] = max(worst["density"], error)
        for probability, value in zip(p, law.quantile(p), strict=True):
            exact = middle("mp.quantile", 20, probability=float(probability), ratio=ratio)
            worst["quantile"] = max(worst["quantile"], abs(float(exact - Fraction(float(value)))))
    assert worst["cdf"] < 5e-16, worst
    assert worst["quantile"] < 1e-13, worst
    assert worst["density"] < 1e-15, worst


def test_float_stieltjes_solves_the_equation_everywhere():
    """Residual of m = 1/(v - v y - v y z m - z); the product of two equal errors hides nothing: |z| from 1e-6 to 1e8."""
    rng = np.random.default_rng(3)
    z = 10 ** rng.uniform(-6, 8, 4000) * np.exp(1j * rng.uniform(0, np.pi, 4000))
    for ratio, variance in ((0.3, 1.0), (1.0, 2.5), (6.0, 0.4)):
        m = MarchenkoPastur(ratio, variance).stieltjes(z)
        back = 1 / (variance * (1 - ratio) - variance * ratio * z * m - z)
        assert (np.abs(m - back) / np.abs(m)).max() < 1e-9  # the equation is ill-conditioned near z = 0 for ratio > 1
        assert (m.imag > 0).all()
        far = np.abs(z) > 1
        assert (np.abs(m - back) / np.abs(m))[far].max() < 2e-14
    x = np.linspace(0.3, 2.0, 50)
    law = MarchenkoPastur(0.25)
    np.testing.assert_allclose(law.stieltjes(x).imag / np.pi, law.density(x), rtol=1e-13)


def test_stieltjes_on_the_real_axis_and_its_conventions():
    left = middle_of(predict("mp.stieltjes", {"z": 0, "ratio": "1/2"}), "re")
    assert left == 2  # E 1/x = 1/(1 - ratio): int rho/(x-z), not int rho/(z-x)
    assert middle_of(predict("mp.stieltjes", {"z": -2, "ratio": 3}), "re") > 0
    assert middle_of(predict("mp.stieltjes", {"z": 40, "ratio": 3}), "re") < 0
    above, below = (
        predict("mp.stieltjes", {"z": z, "ratio": "3", "variance": "2"}).value.midpoint for z in ("1+1j", "1-1j")
    )
    assert above["im"] == -below["im"] > 0
    assert above["re"] == below["re"]
    for z, ratio in (("1", "1/4"), ("0", "2"), ("0", "1"), ("2.25", "1/4")):
        with pytest.raises(InputError, match="on the spectrum"):
            predict("mp.stieltjes", {"z": z, "ratio": ratio})


def middle_of(prediction, part):
    return Fraction(prediction.value.midpoint[part])


def test_conventions_of_ratio_and_variance_on_a_matrix():
    """ratio is columns over rows and variance that of an entry: X of 600 rows and 200 columns, entries of sd 1.5."""
    X = np.random.default_rng(7).normal(0, 1.5, (600, 200))
    eigenvalues = np.linalg.eigvalsh(X.T @ X / 600)
    steps = np.arange(1, 201) / 200
    distance = {
        name: np.abs(MarchenkoPastur(*law).cdf(eigenvalues) - steps).max()
        for name, law in {"right": (1 / 3, 2.25), "inverse ratio": (3, 2.25), "sd for variance": (1 / 3, 1.5)}.items()
    }
    assert distance["right"] < 0.02
    assert min(distance["inverse ratio"], distance["sd for variance"]) > 0.2
    companion = np.concatenate([np.zeros(400), eigenvalues])  # X X'/n has 600 eigenvalues, with ratio 3 of X'
    law = MarchenkoPastur(3, 2.25 / 3)
    at = np.array([0.1, 1.0, 2.0, 3.0, 5.0])
    np.testing.assert_allclose(law.cdf(at), [(companion <= 1e-12 + x).mean() for x in at], atol=0.01)


def test_variance_scales_each_quantity_in_its_own_way():
    """density(x/v)/v, cdf(x/v), v Q, v^k m_k, entropy + log v, log-moment at g v, R(v g) v, S/v, m(z/v)/v."""
    law, scaled = {"ratio": "1/3"}, {"ratio": "1/3", "variance": 4}
    one = lambda id, **more: float(predict(id, law | more))  # noqa: E731
    other = lambda id, **more: float(predict(id, scaled | more))  # noqa: E731
    assert other("mp.density", x=5) == pytest.approx(one("mp.density", x="1.25") / 4, rel=1e-14)
    assert other("mp.cdf", x=5) == pytest.approx(one("mp.cdf", x="1.25"), rel=1e-14)
    assert other("mp.quantile", probability="0.3") == pytest.approx(
        4 * one("mp.quantile", probability="0.3"), rel=1e-14
    )
    assert other("mp.moment", order=3) == pytest.approx(64 * one("mp.moment", order=3), rel=1e-14)
    assert other("mp.entropy") == pytest.approx(one("mp.entropy") + np.log(4), rel=1e-14)
    assert other("mp.log_moment", g=2) == pytest.approx(one("mp.log_moment", g=8), rel=1e-14)
    assert other("mp.r_transform", g=-1) == pytest.approx(4 * one("mp.r_transform", g=-4), rel=1e-14)
    assert other("mp.s_transform", psi=1) == pytest.approx(one("mp.s_transform", psi=1) / 4, rel=1e-14)
    z, w = (predict("mp.stieltjes", d | {"z": z}).value.midpoint for d, z in ((scaled, "4+4j"), (law, "1+1j")))
    assert float(z["im"]) == pytest.approx(float(w["im"]) / 4, rel=1e-14)


def test_points_that_people_trip_over():
    assert predict("mp.density", {"x": "16/9", "ratio": "1/9"}).value.midpoint == 0  # the edge itself, decided exactly
    assert str(predict("mp.density", {"x": 0, "ratio": 1}).value) == "inf"
    assert predict("mp.density", {"x": 0, "ratio": 2}).value.midpoint == 0
    assert predict("mp.cdf", {"x": -1, "ratio": 2}).value.midpoint == 0
    assert predict("mp.log_moment", {"g": 0, "ratio": 2}).value.midpoint == 0
    assert predict("mp.moment", {"order": 0, "ratio": 2}).value.midpoint == 1
    assert predict("mp.singular_cdf", {"s": "-0.5", "ratio": 2}).value.midpoint == 0
    assert np.isnan(MarchenkoPastur(0.5).cdf(np.nan))
    assert np.isnan(MarchenkoPastur(0.5).density(np.nan))
    assert MarchenkoPastur(1.0).density(np.array([0.0, -1.0, 5.0])).tolist() == [np.inf, 0.0, 0.0]
    long = np.linspace(-1, 4, 20001).reshape(3, -1)
    np.testing.assert_array_equal(MarchenkoPastur(0.5).cdf(long)[1], MarchenkoPastur(0.5).cdf(long[1]))


@pytest.mark.parametrize(
    ("id", "inputs", "message"),
    [
        ("mp.cdf", {"x": 1, "ratio": 0}, "ratio must be a real number > 0"),
        ("mp.cdf", {"x": 1, "ratio": 1, "variance": -1}, "variance must be a real number > 0"),
        ("mp.entropy", {"ratio": "1.5"}, "ratio must be a real number > 0 and <= 1"),
        ("mp.quantile", {"probability": "1.5", "ratio": 1}, "probability must be a real number >= 0 and <= 1"),
        ("mp.moment", {"order": "1/2", "ratio": 1}, "order must be an integer"),
        ("mp.r_transform", {"g": 4, "ratio": "0.25"}, "pole at g = 4"),
        ("mp.s_transform", {"psi": -4, "ratio": "0.25"}, "pole at psi = -4"),
    ],
)
def test_refusals(id, inputs, message):
    with pytest.raises(InputError, match=message):
        predict(id, inputs)


def test_the_float_law_refuses_too():
    with pytest.raises(InputError, match="ratio must be positive"):
        MarchenkoPastur(0.0)
    with pytest.raises(InputError, match="variance must be positive"):
        MarchenkoPastur(1.0, np.nan)
    with pytest.raises(InputError, match=r"between 0 and 1; got 1\.5"):
        MarchenkoPastur(1.0).quantile([0.5, 1.5])
