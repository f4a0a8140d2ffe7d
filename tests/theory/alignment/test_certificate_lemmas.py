"""The lemmas under the certificates, on laws so small that every expectation and every subset can be written out."""

from fractions import Fraction
from itertools import combinations, permutations, product
from random import Random

import pytest
from sympy import Rational, lambdify

from theory import formula
from theory.alignment.lemmas import LEMMAS

LEMMA = {each.name: each for each in LEMMAS}


def value(known, **given):
    """The statement in exact rationals."""
    statement = known.statement
    numbers = {each: Rational(Fraction(given[each.name])) for each in statement.free_symbols}
    result = statement.subs(numbers)
    return Fraction(int(result.p), int(result.q))


def moment(law, function):
    return sum(chance * function(x) for x, chance in law)


def laws(seed, count=40):
    """Laws on three rational points."""
    rng = Random(seed)
    for _ in range(count):
        weights = [rng.randint(1, 9) for _ in range(3)]
        yield [(Fraction(rng.randint(-12, 20), 4), Fraction(each, sum(weights))) for each in weights]


def mean_and_variance(law):
    mean = moment(law, lambda x: x)
    return mean, moment(law, lambda x: (x - mean) ** 2)


def test_lemma_0_holds_and_its_two_ends_are_attained():
    """Bh = B covers, Bh = 0 with probability delta undercovers; b on both sides of B."""
    attained = set()
    for B, delta, b in product([Fraction(k, 6) for k in range(7)], repeat=3):
        law = [(Fraction(0), delta), (B, 1 - delta)]
        undercovers = moment(law, lambda bound, B=B: bound < B)
        joint = B * moment(law, lambda bound, b=b: bound <= b)
        bound = value(LEMMA["lemma_0"], b=b, delta=undercovers)
        assert joint <= bound
        if joint == bound > 0:
            attained.add("b" if bound == b else "delta")
    assert attained == {"b", "delta"}


def test_lemma_1_is_the_least_mean_of_a_square_that_covers_the_event():
    for law in laws(1):
        mean, variance = mean_and_variance(law)
        if mean <= 0 or variance == 0:
            continue
        bound = variance / (variance + mean**2)
        best = mean / (variance + mean**2)
        means = {
            lam: moment(law, lambda x, lam=lam: (1 - lam * x) ** 2) for lam in (best, best / 2, best * 2, Fraction(0))
        }
        assert means[best] == bound == min(means.values())
        assert all(means[lam] >= moment(law, lambda x: x <= 0) for lam in means)
    names = {each.name: each for each in LEMMA["lemma_1"].statement.free_symbols}
    assert LEMMA["lemma_1"].statement.subs({names["E"]: 2, names["V"]: 3}) == Rational(3, 7)


def test_lemma_3_bounds_the_kurtosis_of_every_affine_map():
    """And no bound by the kurtosis alone would do: for +-1 the ratio at mean = noise is 2, its kurtosis 1."""
    constant = LEMMA["lemma_3"].statement
    for law in laws(2):
        mean, variance = mean_and_variance(law)
        if variance == 0:
            continue
        fourth = moment(law, lambda x, mean=mean: (x - mean) ** 4)
        kappa = float(constant.subs(dict.fromkeys(constant.free_symbols, fourth / variance**2)))
        for lam in (Fraction(k, 8) for k in range(-16, 33)):
            second = moment(law, lambda x, lam=lam: (1 - lam * x) ** 2)
            ratio = moment(law, lambda x, lam=lam: (1 - lam * x) ** 4) / second**2
            assert ratio <= kappa * (1 + 1e-12), (law, lam)
    signs = [(Fraction(1), Fraction(1, 2)), (Fraction(-1), Fraction(1, 2))]
    ratio = moment(signs, lambda x: (1 - x) ** 4) / moment(signs, lambda x: (1 - x) ** 2) ** 2
    assert ratio == 2
    assert value(LEMMA["lemma_3"], kurtosis=1) == 4


def test_the_kurtosis_of_gaussian_alignments_is_at_most_nine():
    """3 + sum (6 d^4 + 12 d^2 (u^2+v^2)) / (sum u^2+v^2+d^2)^2 over random coordinates; 9 for one product of normals."""
    rng, largest = Random(5), Fraction(0)
    for _ in range(200):
        rows = [[Fraction(rng.randint(0, 8)) for _ in range(3)] for _ in range(rng.randint(1, 4))]
        variance = sum(u * u + v * v + d * d for u, v, d in rows)
        if variance:
            fourth = sum(6 * d**4 + 12 * d * d * (u * u + v * v) for u, v, d in rows)
            largest = max(largest, 3 + fourth / variance**2)
    single = Fraction(3 + 6)
    assert largest <= LEMMA["gaussian_kurtosis"].statement == single


def test_kurtosis_of_a_mean_by_enumeration():
    law = next(laws(3))
    mean, variance = mean_and_variance(law)
    single = moment(law, lambda x: (x - mean) ** 4) / variance**2
    for k in (1, 2, 3):
        means = []
        for sample in product(law, repeat=k):
            chance = Fraction(1)
            for _, each in sample:
                chance *= each
            means.append((sum(x for x, _ in sample) / k, chance))
        centre, spread = mean_and_variance(means)
        assert moment(means, lambda x, c=centre: (x - c) ** 4) / spread**2 == value(
            LEMMA["mean_kurtosis"], kurtosis=single, k=k
        )


@pytest.mark.parametrize(("n", "k"), [(4, 1), (5, 2), (6, 3), (5, 5)])
def test_the_pilot_statistic_averages_over_all_groups(n, k):
    rng = Random(n + k)
    y, lam = [Fraction(rng.randint(-9, 16), 4) for _ in range(n)], Fraction(3, 7)
    means = [sum(group) / k for group in combinations(y, k)]
    averaged = sum((1 - lam * each) ** 2 for each in means) / len(means)
    yb = sum(y) / n
    s2 = sum((each - yb) ** 2 for each in y) / (n - 1)
    assert value(LEMMA["pilot_statistic"], lam=lam, yb=yb, s2=s2, n=n, k=k) == averaged
    divided_by_n = value(LEMMA["pilot_statistic"], lam=lam, yb=yb, s2=s2 * (n - 1) / n, n=n, k=k)
    assert (divided_by_n == averaged) is (k == n)


@pytest.mark.parametrize("m", [1, 2])
def test_the_pair_statistic_averages_over_all_disjoint_samples(m):
    rng = Random(m)
    n, lam = 5, Fraction(2, 5)
    q = [[Fraction(rng.randint(-3, 5)) for _ in range(2)] for _ in range(n)]
    gram = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in q] for a in q]

    def mean(count, term):
        every = list(permutations(range(n), count))
        return sum(term(*each) for each in every) / len(every)

    statistics = {
        "U1": mean(2, lambda i, j: gram[i][j]),
        "A": mean(2, lambda i, j: gram[i][j] ** 2),
        "B": mean(3, lambda i, j, k: gram[i][j] * gram[i][k]),
        "C": mean(4, lambda i, j, k, o: gram[i][j] * gram[k][o]),
    }
    squares = []
    for chosen in combinations(range(n), 2 * m):
        for train in combinations(chosen, m):
            test = [each for each in chosen if each not in train]
            x = sum(gram[i][j] for i in train for j in test) / Fraction(m * m)
            squares.append((1 - lam * x) ** 2)
    assert value(LEMMA["pair_statistic"], lam=lam, m=m, **statistics) == sum(squares) / len(squares)


def test_lemma_2_inverts_its_own_shortfall():
    """Inserted into mean = E W - sqrt(2 E W^2 log(1/delta)/N), both bounds return the mean."""
    given = {"mean": 0.7, "kap": 2.5, "w_max": 6.0, "N": 150, "delta": 0.05}

    def bound(name):
        symbols = sorted(LEMMA[name].statement.free_symbols, key=str)
        return lambdify(symbols, LEMMA[name].statement)(*(given[each.name] for each in symbols))

    noise = 2 * 2.995732273553991 / 150  # 2 log(20)/N
    one, other = bound("lemma_2a"), bound("lemma_2b")
    assert one - (noise * 2.5 * one**2) ** 0.5 == pytest.approx(0.7, rel=1e-13)
    assert other - (noise * 6.0 * other) ** 0.5 == pytest.approx(0.7, rel=1e-13)
    assert one > 0.7
    assert other > 0.7


def test_theorem_c_is_exact_for_a_known_second_moment():
    """With w = B_k itself the certificate is B_K: k samples of noise-to-signal R scale to K as k/K."""
    for k, K, R in product((1, 3, 8), (1, 5, 40), (Fraction(1, 3), Fraction(4))):
        small, large = R / k, R / K
        assert value(formula("alignment.certificate"), w=small / (1 + small), k=k, K=K) == large / (1 + large)
    assert value(formula("alignment.certificate"), w=Fraction(5, 4), k=1, K=1) == 1


def test_theorem_u_covers_the_worse_part_and_is_exact_there():
    """(1/M+1/K) al + be/(MK) at every ratio of al to be; with al or be 0 one of the parts is attained."""
    known = formula("alignment.certificate_unconditional")
    for m, M, K in ((1, 1, 1), (4, 4, 4), (4, 16, 9), (4, 2, 3), (8, 64, 64)):
        attained = False
        for al, be in ((1, 0), (0, 1), (1, 1), (1, 20)):
            small = Fraction(2 * al, m) + Fraction(be, m * m)
            large = (Fraction(1, M) + Fraction(1, K)) * al + Fraction(be, M * K)
            bound = value(known, w=small / (1 + small), m=m, M=M, K=K)
            assert bound >= large / (1 + large)
            attained |= bound == large / (1 + large)
        assert attained, (m, M, K)
    assert value(known, w=Fraction(1, 2), m=8, M=64, K=64) == Fraction(1, 9)  # R_m = 1, the factor m/M
