"""Draws planned before the first one: enough, no more than that, and with the power that they promise."""

import math

import numpy as np
import pytest
from bands import band
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from theory import InputError
from verify.rules import bernoulli_draws_for, draws_for, log_e_value

positive = st.floats(0.01, 100)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(positive, st.floats(-10, 10), st.lists(st.floats(-20, 20), min_size=1, max_size=4))
def test_the_nearest_rival_is_just_beyond_eight_standard_errors(spread, value, rivals):
    gap = min(abs(value - rival) for rival in rivals)
    if gap < 0.01:
        return
    draws = draws_for(spread, value, rivals)
    assert gap * math.sqrt(draws) > 8 * spread * (1 - 1e-12)
    assert draws == 1 or gap * math.sqrt(draws - 1) <= 8 * spread * (1 + 1e-12)


def test_draws_grow_with_the_variance_and_the_square_of_the_distance():
    """64 (s/d)^2 and one more: kills a variance taken for a spread, and 8 without its square."""
    assert draws_for(1.0, 0.0, [1.0]) == 65
    assert draws_for(3.0, 0.0, [1.0]) == 577
    assert draws_for(3.0, 5.0, [5.5, 4.0, 9.0]) == 4 * 576 + 1
    assert draws_for(1.0, 0.0, [1.0], sigma=3) == 10
    assert draws_for(0.0, 0.0, [1.0]) == 1
    assert draws_for(1.0, 0.0, [math.inf]) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1.0, 0.5, [2.0, 0.5]), "no number of draws tells the rival 0.5 from the value 0.5"),
        ((1.0, 0.0, [1e-300]), "no number of draws"),
        ((1.0, 0.0, []), "against rival values"),
        ((1.0, 0.0, [math.nan]), "against rival values"),
        ((-1.0, 0.0, [1.0]), "spread -1.0"),
        ((math.nan, 0.0, [1.0]), "spread nan"),
        ((1.0, math.nan, [1.0]), "value nan"),
        ((1.0, math.inf, [1.0]), "value inf"),
    ],
)
def test_what_cannot_be_planned_is_refused(arguments, words):
    with pytest.raises(InputError, match=words):
        draws_for(*arguments)


@pytest.mark.parametrize(
    ("p", "bounds"),
    [(0.75, [2 / 3, 0.6, 0.0]), (0.3, [0.29]), (0.02, [0.01]), (1e-4, [3e-5]), (0.99, [0.9]), (1.0, [0.5, 0.95])],
)
def test_bernoulli_draws_meet_both_conditions_and_no_fewer_do(p, bounds):
    """The conditions again, with SciPy's binomial law in place of the search."""

    def meets(draws):
        far = all((p - bound) * math.sqrt(draws) > 8 * math.sqrt(p * (1 - p)) for bound in bounds)
        events = int(binom.ppf(norm.cdf(-4.0), draws, p))
        return far and all(log_e_value(events, draws, bound) > math.log(1e6) for bound in bounds)

    draws = bernoulli_draws_for(p, bounds)
    assert meets(draws)
    assert not meets(draws - 1)


@pytest.mark.parametrize(("p", "bound"), [(0.75, 2 / 3), (0.02, 0.01), (0.99, 0.9)])
def test_bernoulli_draws_have_their_power(p, bound):
    """Refuted at 1/alpha = 1e6 but for 3.2e-5; a quarter of the draws does not do it."""
    runs, draws = 100_000, bernoulli_draws_for(p, [bound])

    def refuted(count):
        events, times = np.unique(np.random.default_rng(7).binomial(count, p, runs), return_counts=True)
        return sum(n for k, n in zip(events, times, strict=True) if log_e_value(int(k), count, bound) > math.log(1e6))

    assert refuted(draws) >= band(1 - 3.2e-5, runs).start
    assert refuted(draws // 4) < band(1 - 3.2e-5, runs).start


@pytest.mark.parametrize(
    ("p", "bounds"), [(0.5, [0.5]), (0.5, [0.2, 0.6]), (0.0, [0.0]), (0.5, [-0.1]), (1.5, [0.5]), (0.5, [math.nan])]
)
def test_a_bound_that_the_event_does_not_exceed_is_refused(p, bounds):
    with pytest.raises(InputError, match="cannot refute"):
        bernoulli_draws_for(p, bounds)
    with pytest.raises(InputError, match="against rival"):
        bernoulli_draws_for(0.5, [])
