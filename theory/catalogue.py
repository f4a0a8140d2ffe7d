"""The catalogue: every formula under its id. A topic is imported when it is first asked for."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from .formula import Formula, InputError

__all__ = ["TOPICS", "catalogue", "formula", "topic"]

TOPICS: dict[str, tuple[str, str]] = {
    "alignment": ("theory.alignment", "finite-sample alignment of training and test gradients"),
    "mp": ("theory.mp", "Marchenko-Pastur law: eigenvalues of a random matrix's Gram matrix"),
    "tracy_widom": ("theory.tracy_widom", "Tracy-Widom laws: where the largest eigenvalue of noise ends"),
    "spiked": ("theory.spiked", "spiked random matrices: where a planted direction shows, and how well"),
    "mlp": ("theory.mlp", "training of wide perceptrons: loss, kernels, outliers of hidden weights"),
    "path": ("theory.path", "path conditioning: rescalings that even out the path kernel's diagonal"),
}
"""Topic name -> (package that holds `FORMULAS`, one line of description)."""


def topic(name: str) -> tuple[Formula, ...]:
    """The formulas of one topic, in the order the topic lists them.

    >>> [f.id for f in topic("alignment")][:2]
    ['alignment.mean', 'alignment.variance']
    """
    if name not in TOPICS:
        raise InputError(f"there is no topic {name!r}; the catalogue has {', '.join(TOPICS)}")
    return import_module(TOPICS[name][0]).FORMULAS


def catalogue() -> dict[str, Formula]:
    """Every formula by id, topic after topic."""
    return {each.id: each for name in TOPICS for each in topic(name)}


def formula(id: str) -> Formula:
    """The formula of that id; an InputError that names the near miss otherwise.

    >>> formula("alignment.n_eff").title
    'effective sample size'
    >>> formula("alignment.neff")
    Traceback (most recent call last):
        ...
    theory.formula.InputError: there is no formula 'alignment.neff'. Did you mean alignment.n_eff?
    """
    name = id.split(".", 1)[0]
    known = {each.id: each for each in topic(name)} if name in TOPICS else catalogue()
    if id in known:
        return known[id]
    near = get_close_matches(id, known or catalogue(), n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]}?" if near else " `assay predict` lists them all."
    raise InputError(f"there is no formula {id!r}.{hint}")
