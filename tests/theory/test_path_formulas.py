"""Every path formula follows from its axioms, notices when one is broken, and agrees with what it is a case of."""

from functools import cache
from random import Random

import pytest
from sympy import Matrix, Rational, Symbol, Tuple, diff, exp, hessian, log, oo, simplify, symbols

from theory import InputError, formula, topic
from theory.path.criterion import GENERATORS, condition_from_gap, criterion, difference, generator
from theory.path.random_init import expected_g, n, t, v

FORMULAS = [each.id for each in topic("path")]
BROKEN = [(each.id, axiom.name) for each in topic("path") for axiom in each.axioms]
DIGITS = 30


@cache
def derived(id, breaking=None):
    return formula(id).derive(breaking).result


def points(id, count=4):
    """Rational points where no two numbers agree; counts that fit a network where a formula takes counts."""
    rng = Random(3)
    names = {each.name: each for each in formula(id).parameters}
    for _ in range(count):
        values = {name: Rational(rng.randint(5, 120), 32) for name in ("incoming", "outgoing", "rest", "scale", "gap")}
        values |= {"fan_in": rng.randint(3, 6), "fan_out": rng.randint(1, 2), "parameters": rng.randint(13, 30)}
        values |= {"width": rng.randint(2, 9), "layers": rng.randint(2, 6)}

        def value(symbol, values=values):
            return values[symbol.name] if symbol.name in names else Rational(rng.randint(5, 120), 32)

        yield value


def at(expression, values):
    return expression.subs(values).evalf(DIGITS)


def gap(one, other, value):
    parts = [(one, other)] if not isinstance(other, (tuple, Tuple)) else list(zip(one, other, strict=True))
    symbols = sorted({s for pair in parts for each in pair for s in each.free_symbols}, key=str)
    values = {symbol: value(symbol) for symbol in symbols}
    gaps = []
    for left, right in parts:
        a, b = at(left, values), at(right, values)
        gaps.append(abs(a - b) / max(abs(a), abs(b)) if a != b else 0)
    return max(gaps)


@pytest.mark.parametrize("id", FORMULAS)
def test_the_derivation_arrives_at_the_statement(id):
    for value in points(id):
        assert gap(derived(id), formula(id).statement, value) < 1e-25


@pytest.mark.parametrize(("id", "axiom"), BROKEN)
def test_a_broken_axiom_is_noticed(id, axiom):
    assert max(gap(derived(id, axiom), formula(id).statement, value) for value in points(id, 2)) > 1e-3


def test_the_divergences_of_kernel_and_gram_matrix_differ_by_the_zeros_alone():
    """Section 6 of the notes: q = 70, p = 32 gives 19 and 38; LogDet is infinite, and would be equal only at q = p."""
    assert [difference(name, 70, 32) for name in ("frobenius", "von_neumann", "logdet")] == [19, 38, oo]
    assert difference("logdet", 5, 5) == 0
    x = Symbol("lambda", positive=True)
    for zeta in GENERATORS.values():
        f = generator(zeta)
        assert (f.subs(x, 1), diff(f, x).subs(x, 1)) == (0, 0)
        assert simplify(diff(f, x, 2)).subs(x, Rational(7, 3)) > 0
    with pytest.raises(InputError, match="frobenius, von_neumann, logdet"):
        difference("stein", 3, 2)


def test_the_criterion_has_the_gradient_and_the_covariance_for_hessian_that_are_claimed():
    z = symbols("z1 z2", real=True)
    B = Matrix([[-1, 0], [1, -1], [0, 1], [-1, 0], [0, 0], [1, -1]])
    g = (Rational(1, 2), 3, Rational(5, 4), 2, 7, Rational(1, 8))
    F, gradient, H = criterion(g, B, z)
    for here in ((0, 0), (Rational(3, 2), -2)):
        point = dict(zip(z, here, strict=True))
        slope = Matrix([diff(F, each) for each in z]) - gradient
        assert max(abs(each) for each in (hessian(F, z) - H).subs(point).evalf(40)) < 1e-35
        assert max(abs(each) for each in slope.subs(point).evalf(40)) < 1e-35
        values = H.subs(point).evalf(40)
        assert values[0, 0] > 0
        assert values.det() > 0
    # F less p log p + sum log g is p log(AM/GM) of g' = g e^(Bz).
    point = {z[0]: Rational(1, 3), z[1]: Rational(-4, 5)}
    rescaled = [each * exp((B * Matrix(z))[i]) for i, each in enumerate(g)]
    spread = 6 * log(sum(rescaled) / 6) - sum(map(log, rescaled))
    assert abs((F - 6 * log(6) - sum(map(log, g)) - spread).subs(point).evalf(40)) < 1e-35


def test_the_coordinate_update_is_where_the_criterion_is_stationary():
    z = Symbol("z", real=True)
    C, B, R, p, n_in, n_out = Rational(5, 4), Rational(1, 3), Rational(7, 2), 17, 5, 2
    F = p * log(R + B * exp(z) + C * exp(-z)) - (n_out - n_in) * z
    values = {"incoming": C, "outgoing": B, "rest": R, "parameters": p, "fan_in": n_in, "fan_out": n_out}
    statement = formula("path.coordinate_update").statement
    update = statement.subs({symbol: values[symbol.name] for symbol in statement.free_symbols})
    assert abs(diff(F, z).subs(z, update).evalf(40)) < 1e-35
    assert diff(F, z, 2).subs(z, update).evalf() > 0


def test_the_condition_bound_is_attained_and_at_most_four_K():
    """One eigenvalue at each end and the others at the middle attain it."""
    low, high = Rational(1), Rational(9)
    spectrum = [low, high, *[(low + high) / 2] * 3]
    K = (sum(spectrum) / 5) ** 5 / spectrum[0] / spectrum[1] / spectrum[2] ** 3
    assert simplify(condition_from_gap(K) - 9) == 0
    assert condition_from_gap(K) <= 4 * K


@pytest.mark.parametrize("biases", ["none", "hidden", "all"])
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_counting_paths_and_the_recursion_give_the_same_expectation(depth, biases):
    """E g_W = beta_l m_(l-1), E g_b = beta_l, for any depth; the statement shows three matrices."""
    biased = {"none": 0, "hidden": depth - 1, "all": depth}[biases]
    m, beta = [1], [1]
    for k in range(1, depth + 1):
        m.append(n(k - 1) * v(k) * m[-1] + (t(k) if k <= biased else 0))
    for k in range(depth, 1, -1):
        beta.insert(0, n(k) * v(k) * beta[0])
    weights, of_biases = expected_g(depth, biases)
    assert [(w - b * a).expand() for w, b, a in zip(weights, beta, m[:-1], strict=True)] == [0] * depth
    assert [(each - b).expand() for each, b in zip(of_biases, beta, strict=False)] == [0] * biased
    assert len(of_biases) == biased


def test_small_variance_is_the_general_expectation_at_constant_width():
    for depth, width, scale in ((2, 5, Rational(1, 4)), (4, 3, Rational(3, 2)), (3, 4, Rational(1))):
        weights, biases = expected_g(depth, "hidden")
        point = {n(k): width for k in range(depth + 1)} | {v(k): scale / width for k in range(1, depth + 1)}
        point |= {t(k): 0 for k in range(1, depth + 1)}
        g = [each.subs(point) for each in weights for _ in range(width**2)]
        g += [each.subs(point) for each in biases for _ in range(width)]
        expected = log(sum(g) / len(g)) - sum(map(log, g)) / len(g)
        names = {"width": width, "layers": depth, "scale": scale}
        statement = formula("path.small_variance_gap").statement
        found = statement.subs({symbol: names[symbol.name] for symbol in statement.free_symbols})
        assert abs((found - expected).evalf(30)) < 1e-25


def test_without_biases_the_rescaling_leaves_no_gap_in_the_mean():
    statement = formula("path.mean_field_rescaling").statement
    weights, _ = expected_g(3, "none")
    zeta = (0, *statement, 0)
    logs = [log(g) + zeta[k] - zeta[k + 1] for k, g in enumerate(weights)]
    point = {n(k): Rational(7 + 3 * k, 2) for k in range(4)} | {v(k): Rational(k, 5) for k in range(1, 4)}
    values = [each.subs(point).evalf(30) for each in logs]
    assert max(values) - min(values) < 1e-25
