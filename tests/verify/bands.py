"""What a simulated count may be: the exact binomial interval outside which either side has probability 1e-5."""

from scipy.stats import binom


def band(rate, runs):
    return range(int(binom.ppf(1e-5, runs, rate)), int(binom.ppf(1 - 1e-5, runs, rate)) + 1)
