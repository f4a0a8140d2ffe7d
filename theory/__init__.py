"""Symbols: every closed form, derived with SymPy. Imports SymPy and the standard library, nothing else."""

from .catalogue import TOPICS, catalogue, formula, topic
from .formula import (
    DERIVED_HERE,
    Assumption,
    Axiom,
    Derivation,
    Domain,
    Formula,
    InputError,
    Parameter,
    Source,
    Step,
)

__all__ = [
    "DERIVED_HERE",
    "TOPICS",
    "Assumption",
    "Axiom",
    "Derivation",
    "Domain",
    "Formula",
    "InputError",
    "Parameter",
    "Source",
    "Step",
    "catalogue",
    "formula",
    "topic",
]
