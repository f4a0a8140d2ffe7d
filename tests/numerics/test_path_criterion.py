"""The criterion in its two forms, its solver, its certificate, its descent: each against another, and against the notes."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from numerics import predict
from numerics.path import Chain, Criterion, certificate, solve
from numerics.path.baselines import enorm, path_sgd_scaling
from numerics.path.descent import coordinate_step, descend
from theory import InputError

EXACT = settings(derandomize=True, deadline=None, max_examples=30)


def chain_of(widths, rng, scale=1.0, biased=True):
    weights = [scale * rng.uniform(-1, 1, (n, m)) / math.sqrt(m) for m, n in pairwise(widths)]
    biases = [scale * rng.uniform(-1, 1, n) / math.sqrt(m) if biased else None for m, n in pairwise(widths)]
    return Chain.of(weights, biases)


@pytest.fixture(scope="module")
def net_a():
    """Net A of the notes: widths 3, 4, 2, 2."""
    n = [3, 4, 2, 2]
    weights = [
        np.array([[math.sin(1 + j + 2 * k + 3 * layer) for k in range(n[layer - 1])] for j in range(n[layer])])
        for layer in (1, 2, 3)
    ]
    biases = [np.array([0.5 * math.cos(j + layer) for j in range(n[layer])]) for layer in (1, 2, 3)]
    return Chain.of(weights, biases)


@st.composite
def lists(draw):
    """A random list of entries among up to 6 labels, most with paths from and to the ground, some dead, some self-joined."""
    labels = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    extra = draw(st.integers(0, 12))
    out = np.concatenate((np.arange(1, labels + 1), np.zeros(labels, int), rng.integers(0, labels + 1, extra)))
    into = np.concatenate((np.zeros(labels, int), np.arange(1, labels + 1), rng.integers(0, labels + 1, extra)))
    mass = rng.normal(0, 2, len(out))
    mass[2 * labels :][rng.random(extra) < 0.2] = -np.inf
    count = rng.integers(1, 6, len(out))
    return Criterion.of(out, into, mass, count, labels=labels), rng


def F(criterion, z):
    """F/p entry by entry, in mpmath: the definition."""
    at = [0, *z]
    rows = [mpmath.mpf(at[i]) - at[o] for o, i in zip(criterion.out, criterion.into, strict=True)]
    total = mpmath.fsum(mpmath.exp(m + row) for m, row in zip(criterion.log_mass, rows, strict=True))
    return (
        mpmath.log(total)
        - mpmath.fsum(c * row for c, row in zip(criterion.count, rows, strict=True)) / criterion.parameters
    )


def test_reference_numbers_of_net_a(net_a):
    """References 2 and 5 to 8; in both forms."""
    z = [
        -0.4994307574090645,
        -1.1954260711549478,
        -0.2566881952700674,
        -0.7610838326838953,
        -0.3824248200809542,
        -1.2332140463326333,
    ]
    for form in (net_a, net_a.entries()):
        assert (form.labels, form.parameters) == (6, 32)
        at = form.at(np.zeros(6)).value
        assert math.exp(at) == pytest.approx(44.18307658636196, rel=1e-14)
        assert 32 * at == pytest.approx(121.22693865932405, rel=1e-14)
        found = solve(form)
        assert 32 * found.value == pytest.approx(114.37849198389348, rel=1e-14)
        assert found.z == pytest.approx(z, abs=1e-9)
        assert found.gap_before == pytest.approx(0.24583024037926782, abs=2e-15)
        assert found.gap == pytest.approx(0.031816281772062624, abs=2e-15)
        assert found.certificate < 1e-15
    assert net_a.log_beta[0][0] + net_a.log_m[0][0] == pytest.approx(math.log(1.0139864083996852), abs=1e-14)
    assert net_a.log_beta[1][1] + net_a.log_m[1][2] == pytest.approx(math.log(0.7421381011506295), abs=1e-14)


@given(lists())
@EXACT
def test_value_gradient_and_hessian_are_those_of_the_definition(case):
    criterion, rng = case
    z = rng.normal(0, 1.5, criterion.labels)
    point, h = criterion.at(z), 1e-4
    with mpmath.workdps(40):
        assert point.value == pytest.approx(float(F(criterion, z)), abs=1e-13)
        for k in range(criterion.labels):
            up, down = (list(map(mpmath.mpf, z)) for _ in range(2))
            up[k] += mpmath.mpf(10) ** -12
            down[k] -= mpmath.mpf(10) ** -12
            slope = (F(criterion, up) - F(criterion, down)) / (2 * mpmath.mpf(10) ** -12)
            assert (point.slope - criterion.balance)[k] == pytest.approx(float(slope), abs=1e-12)
    d = rng.normal(0, 1, criterion.labels)
    product = point.times(d) - point.slope * (point.slope @ d)
    difference = (criterion.at(z + h * d).slope - criterion.at(z - h * d).slope) / (2 * h)
    assert product == pytest.approx(difference, abs=1e-6)
    assert d @ product >= -1e-14


@given(lists())
@EXACT
def test_the_minimiser_is_one_by_newton_descent_and_a_general_optimiser(case):
    criterion, rng = case
    found = solve(criterion)
    assert found.certificate < 1e-12
    assert criterion.at(descend(criterion, sweeps=3000)).value == pytest.approx(found.value, abs=1e-12)
    other = minimize(
        lambda z: criterion.at(z).value,
        np.zeros(criterion.labels),
        jac=lambda z: criterion.at(z).slope - criterion.balance,
        method="BFGS",
        options={"gtol": 1e-9},
    )
    assert other.fun == pytest.approx(found.value, abs=1e-11)
    for _ in range(5):
        assert criterion.at(found.z + rng.normal(0, 0.5, criterion.labels)).value >= found.value - 1e-15


@given(lists(), st.floats(0.02, 2))
@EXACT
def test_the_certificate_bounds_the_excess_and_is_sharp_where_it_is_near(case, distance):
    criterion, rng = case
    best = solve(criterion)
    z = best.z + distance * rng.uniform(-1, 1, criterion.labels)
    excess = criterion.at(z).value - best.value
    bound = certificate(criterion, z)
    assert bound >= excess - 1e-14
    close = best.z + 0.01 * (z - best.z)
    excess = criterion.at(close).value - best.value
    assert 0.999 * excess - 1e-14 <= certificate(criterion, close) <= 1.1 * excess + 1e-13


@pytest.mark.parametrize("seed", [17, 369, 370, 373, 380])
def test_every_accepted_step_lowers_the_criterion(seed):
    """Far from the minimum the whole Newton step may raise F, and does in four of these: hence the line search."""
    rng, values = np.random.default_rng(seed), []
    labels, extra = int(rng.integers(1, 7)), int(rng.integers(0, 12))
    out = np.concatenate((np.arange(1, labels + 1), np.zeros(labels, int), rng.integers(0, labels + 1, extra)))
    into = np.concatenate((np.zeros(labels, int), np.arange(1, labels + 1), rng.integers(0, labels + 1, extra)))
    mass, count = rng.normal(0, 2, len(out)), rng.integers(1, 6, len(out))
    for scale in (3, 10):
        far = np.concatenate(([0.0], rng.uniform(-scale, scale, labels)))
        criterion = Criterion.of(out, into, mass + far[into] - far[out], count, labels=labels)

        class Watched:
            def __getattr__(self, name, criterion=criterion):
                return getattr(criterion, name)

            def at(self, z, near=None, criterion=criterion):
                if near is not None:  # the point that was accepted last
                    values[-1].append(near.value)
                return criterion.at(z, near)

        values.append([])
        found = solve(Watched())
        assert all(later <= before + 1e-15 * abs(before) for before, later in pairwise(values[-1]))
        assert found.certificate < 1e-12


def test_a_certificate_is_infinite_where_the_dual_point_is_none():
    pair = Criterion.of([1, 0], [0, 1], np.log([4.0, 1.0]), [1, 1], labels=1)
    assert certificate(pair, np.array([9.0])) == math.inf
    assert certificate(pair, np.array([math.nan])) == math.inf


@given(lists(), st.floats(0.05, 1.5))
@EXACT
def test_in_a_box_the_minimiser_is_that_of_a_bounded_optimiser(case, box):
    criterion, _ = case
    found = solve(criterion, max_abs_z=box)
    assert np.abs(found.z).max() <= box
    assert found.certificate < 1e-12
    assert (found.clipped == (np.abs(found.z) >= box)).all()
    other = minimize(
        lambda z: criterion.at(z).value,
        np.zeros(criterion.labels),
        jac=lambda z: criterion.at(z).slope - criterion.balance,
        method="L-BFGS-B",
        bounds=[(-box, box)] * criterion.labels,
        options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 2000},
    )
    assert found.value <= other.fun + 1e-14
    assert found.value == pytest.approx(other.fun, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_chain_is_its_list_of_pairs(seed):
    rng = np.random.default_rng(seed)
    widths = rng.integers(1, 7, rng.integers(2, 6)).tolist()
    chain = chain_of(widths, rng, biased=bool(seed % 2))
    pairs = chain.entries()
    assert (chain.labels, chain.parameters, chain.mean_log) == (pairs.labels, pairs.parameters, pairs.mean_log)
    assert chain.balance == pytest.approx(pairs.balance, abs=1e-16)
    z, d = rng.normal(0, 2, (2, chain.labels))
    one, other = chain.at(z), pairs.at(z)
    assert one.value == pytest.approx(other.value, abs=1e-14)
    for name in ("incoming", "outgoing", "slope"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-15)
    assert one.times(d) == pytest.approx(other.times(d), abs=1e-14)
    if chain.labels:
        (low, high), (least, largest) = one.range(d), other.range(d)
        assert low <= least + 1e-15
        assert high >= largest - 1e-15
        logs = pairs.log_mass + np.concatenate(([0.0], z))[pairs.into] - np.concatenate(([0.0], z))[pairs.out]
        assert chain.gap(z) == pytest.approx(math.log(np.exp(logs).mean()) - logs.mean(), abs=1e-13)
    classes = [set(each.tolist()) for each in pairs.classes()]
    assert set().union(*classes) == set(range(chain.labels))


def test_deep_small_nets_are_solved_in_the_log_domain():
    """Notes, section 11: depth 150, width 30, scale 0.1, where every seventh g is below the range of float64."""
    rng = np.random.default_rng(0)
    chain = chain_of([30] * 61, rng, scale=0.1)
    assert min(each.min() for each in chain.log_beta) < -250
    found = solve(chain, start=chain.start())
    assert found.certificate < 1e-13
    assert found.z.min() < -250
    boxed = solve(chain, max_abs_z=60.0)
    assert boxed.certificate < 1e-10
    assert boxed.clipped.any()
    assert found.gap < boxed.gap < boxed.gap_before


def test_a_prior_rescaling_shifts_the_minimiser_and_leaves_the_gap():
    """z*(D theta) = z*(theta) - z0; and PathCond of its own result starts where it ended."""
    rng = np.random.default_rng(5)
    chain = chain_of([4, 6, 3, 5], rng).entries()
    first = solve(chain)
    shift = rng.normal(0, 1, chain.labels)
    at = np.concatenate(([0.0], shift))
    moved = Criterion.of(
        chain.out, chain.into, chain.log_mass + at[chain.into] - at[chain.out], chain.count, labels=chain.labels
    )
    second = solve(moved)
    assert second.z == pytest.approx(first.z - shift, abs=1e-8)
    at = np.concatenate(([0.0], first.z))
    again = Criterion.of(
        chain.out, chain.into, chain.log_mass + at[chain.into] - at[chain.out], chain.count, labels=chain.labels
    )
    assert np.abs(solve(again).z).max() < 1e-8


def test_dead_parameters_leave_p_and_dead_units_stay():
    """Unit 2 has no live outgoing parameter, so its incoming ones are dead as well; kept, they would send it to -inf."""
    live = Criterion.of([1, 0, 2, 0], [0, 1, 0, 2], [0.5, 1.0, -math.inf, 0.3], [3, 2, 3, 1], labels=2)
    assert live.parameters == 6
    found = solve(live)
    assert np.isfinite(found.z).all()
    alone = solve(Criterion.of([1, 0, 0], [0, 1, 2], [0.5, 1.0, 0.3], [3, 2, 1], labels=2))
    assert found.value == alone.value
    nobody = Criterion.of([1, 0, 2], [0, 1, 0], [0.5, 1.0, -math.inf], [3, 2, 3], labels=2)
    assert solve(nobody).z[1] == 0


def test_a_parameter_from_a_label_to_itself_does_not_move_it():
    """A weight from a residual stream to itself is constant under the stream's factor."""
    plain = Criterion.of([1, 0, 0], [0, 1, 0], [0.0, 1.5, 0.7], [2, 3, 4], labels=1)
    looped = Criterion.of([1, 0, 1], [0, 1, 1], [0.0, 1.5, 0.7], [2, 3, 4], labels=1)
    assert solve(looped).z == pytest.approx(solve(plain).z, abs=1e-14)
    assert looped.classes()[0].tolist() == [0]


def test_one_label_descends_to_the_closed_form():
    """`path.coordinate_update` in balls is the step of a class of one label: masses relative to the sum before it."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        C, B, R = rng.uniform(0.1, 4, 3)
        fan_in, fan_out = (int(each) for each in rng.integers(1, 7, 2))
        p = fan_in + fan_out + int(rng.integers(1, 9))
        inputs = {"incoming": C, "outgoing": B, "rest": R, "fan_in": fan_in, "fan_out": fan_out, "parameters": p}
        S = C + B + R
        step = coordinate_step(np.array([C / S]), np.array([B / S]), np.array([(fan_in - fan_out) / p]), R / S)
        assert step[0] == pytest.approx(float(predict("path.coordinate_update", inputs).value), abs=1e-13)


def test_enorm_balances_every_unit_and_path_sgd_inverts_g():
    rng = np.random.default_rng(7)
    widths = [4, 6, 3, 5]
    weights = [rng.normal(0, 1, (n, m)) for m, n in pairwise(widths)]
    ends = [np.zeros(4, int), np.arange(1, 7), np.arange(7, 10), np.zeros(5, int)]
    out = np.concatenate([np.repeat(above, len(below)) for below, above in pairwise(ends)])
    into = np.concatenate([np.tile(below, len(above)) for below, above in pairwise(ends)])
    for order in (1.0, 2.0):
        logs = np.concatenate([order * np.log(np.abs(each)).ravel() for each in weights])
        z = enorm(out, into, logs, labels=9, order=order)
        z1, z2 = z[:6], z[6:]
        scaled = [
            weights[0] * np.exp(z1[:, None] / 2),
            weights[1] * np.exp(z2[:, None] / 2 - z1 / 2),
            weights[2] * np.exp(-z2 / 2),
        ]
        powers = [np.abs(each) ** order for each in scaled]
        assert powers[0].sum(1) == pytest.approx(powers[1].sum(0), rel=1e-8)
        assert powers[1].sum(1) == pytest.approx(powers[2].sum(0), rel=1e-8)
    assert enorm([1, 0], [0, 1], [-np.inf, 0.0], labels=1).tolist() == [0.0]
    factors = path_sgd_scaling(np.array([0.0, 2.0, -np.inf]))
    assert factors.tolist() == pytest.approx([math.e, 1 / math.e, 0])


def test_what_is_no_criterion_is_refused():
    with pytest.raises(InputError, match="labels run from 0"):
        Criterion.of([2], [0], [0.0], [1], labels=1)
    with pytest.raises(InputError, match="NaN"):
        Criterion.of([1], [0], [math.nan], [1], labels=1)
    with pytest.raises(InputError, match="no parameter lies on a path"):
        Criterion.of([1], [0], [-math.inf], [1], labels=1)
    with pytest.raises(InputError, match="max_abs_z"):
        solve(Criterion.of([1, 0], [0, 1], [0.0, 0.0], [1, 1], labels=1), max_abs_z=0)
    with pytest.raises(InputError, match="mean_log"):
        Criterion.of([1, 0], [0, 1], [0.0, 0.0], [1, 1], labels=1).gap(np.zeros(1))
    with pytest.raises(InputError, match="dead"):
        Chain.of([np.array([[1.0], [0.0]]), np.array([[1.0, 0.0]])], [None, None])
