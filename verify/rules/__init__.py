"""The decision rules as pure statistics: no formula, no network, no stream. SciPy is loaded when one is used."""

from .asymptotic import Intercept, asymptotic, fit_intercept
from .decision import ALPHA, CONFIRM_Z, REFUTE_Z, Decision, Verdict, alpha_each, false_alarm_budget
from .equality import equality, shortfall, standard_score
from .equivalent_z import fisher_z, student_z
from .planning import bernoulli_draws_for, draws_for
from .trend import slopes_of_logs, trend
from .upper_bound import log_e_value, upper_bound

__all__ = [
    "ALPHA",
    "CONFIRM_Z",
    "Decision",
    "Intercept",
    "REFUTE_Z",
    "Verdict",
    "alpha_each",
    "asymptotic",
    "bernoulli_draws_for",
    "draws_for",
    "equality",
    "false_alarm_budget",
    "fisher_z",
    "fit_intercept",
    "log_e_value",
    "shortfall",
    "slopes_of_logs",
    "standard_score",
    "student_z",
    "trend",
    "upper_bound",
]
