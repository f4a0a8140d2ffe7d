"""What holds for every formula: it follows from its axioms, needs each of them, never reads its statement, and prints."""

from dataclasses import replace
from functools import cache
from re import findall
from unittest.mock import patch

import pytest
from comparing import gap
from sympy import Eq, Symbol, Tuple
from sympy.printing.mathml import mathml

from numerics import admit
from theory import Formula, InputError, catalogue
from theory.alignment.closed_forms import CLOSED_FORMS
from theory.alignment.lemmas import LEMMAS
from theory.words import latex_of

ALIGNMENT = {each.id: each for each in catalogue().values() if each.topic == "alignment"}
OURS = ALIGNMENT | {each.id: each for each in (*LEMMAS, *CLOSED_FORMS)}
EVERY = catalogue() | OURS
POINTS = 20


def forbidden(self):
    raise AssertionError("derive() read the statement")


@cache
def derived(id, breaking=None):
    """Every derivation of these tests is made where the statement cannot be read."""
    with patch.object(Formula, "statement", property(forbidden)):
        return EVERY[id].derive(breaking)


@pytest.mark.parametrize("id", OURS)
def test_the_derivation_arrives_at_the_statement(id):
    worst = gap(OURS[id], derived(id).result, OURS[id].statement, POINTS)
    assert worst < 1e-40, worst


@pytest.mark.parametrize("id", OURS)
def test_every_broken_axiom_is_noticed(id):
    assert OURS[id].axioms, "a derivation starts from something"
    for axiom in OURS[id].axioms:
        apart = gap(OURS[id], derived(id, axiom.name).result, OURS[id].statement, POINTS)
        assert apart > 1e-3, f"{axiom.name}: the rival's result is {apart} away"
    with pytest.raises(InputError, match="no axiom 'parallels'"):
        OURS[id].derive("parallels")


@pytest.mark.parametrize("id", OURS)
def test_the_comparison_sees_the_usual_mutants(id):
    """Doubled, inverted, squared: if these were equal to the statement, agreement would mean nothing."""
    statement = OURS[id].statement
    for mutant in (2 * statement, 1 / (1 + statement), statement**2 + statement / 7):
        assert gap(OURS[id], mutant, statement, 4) > 1e-3


@pytest.mark.parametrize("id", EVERY)
def test_deriving_never_reads_the_statement(id):
    assert len(derived(id)) > 0


def test_a_derivation_that_reads_the_statement_is_caught():
    honest = EVERY["alignment.n_eff"]
    lazy = replace(honest, prove=lambda known: honest.statement)
    with patch.object(Formula, "statement", property(forbidden)), pytest.raises(AssertionError, match="read the state"):
        lazy.derive()


@pytest.mark.parametrize("id", EVERY)
def test_every_statement_and_step_prints_as_latex_and_mathml(id):
    statement = EVERY[id].statement
    parts = statement if isinstance(statement, (tuple, Tuple)) else (statement,)
    shown = [*parts, *(step.equation for step in derived(id))]
    shown += [Eq(Symbol(EVERY[id].symbol), part, evaluate=False) for part in parts]
    for each in shown:
        assert latex_of(each).strip()
        page = mathml(each, printer="presentation")  # HTML, not XML: SymPy leaves a bare < in text
        assert len(findall(r"<m\w+", page)) == len(findall(r"</m\w+>|<m[^<>]*/>", page)) > 0
    assert all(step.why.strip() for step in derived(id))


@pytest.mark.parametrize("id", catalogue())
def test_every_example_is_admissible(id):
    formula = catalogue()[id]
    assert formula.example
    admitted, curve = admit(formula, formula.example)
    assert curve is None
    assert all(admitted[each.name] is not None for each in formula.parameters if each.required)


@pytest.mark.parametrize("id", EVERY)
def test_every_formula_says_what_it_divides_by_and_where_it_comes_from(id):
    formula = EVERY[id]
    assert formula.title.strip()
    assert len(formula.conventions) > 10
    assert str(formula.source).strip()
    for axiom in formula.axioms:
        assert "; the rival" in axiom.text, f"{axiom.name} does not name its rival"


def test_ids_are_unique_and_statements_speak_of_their_parameters():
    assert len(OURS) == len(ALIGNMENT) + len(LEMMAS) + len(CLOSED_FORMS)
    for id in (
        "width_exponent",
        "expansion_decrease",
        "intervention_ratio",
        "certificate",
        "certificate_unconditional",
    ):
        formula = ALIGNMENT[f"alignment.{id}"]
        assert {each.name for each in formula.parameters} == {str(each) for each in formula.statement.free_symbols}
