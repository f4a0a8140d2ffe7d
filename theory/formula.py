"""The first noun. A `Formula` is a closed form together with everything needed to doubt it.

It says what it states, what it takes and in which domain, what it assumes, what is divided by what, where it comes
from, and how it follows from its axioms. Statements and derivations are built when asked for: listing the catalogue
imports no SymPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import sympy

__all__ = [
    "Assumption",
    "Axiom",
    "DERIVED_HERE",
    "Derivation",
    "Domain",
    "Formula",
    "InputError",
    "Parameter",
    "Source",
    "Step",
]

Kind = Literal["integer", "real", "complex", "vector", "covariance", "matrix", "choice"]


class InputError(ValueError):
    """What was asked cannot be answered, and the message says which input is at fault and what would do.

    Every layer raises this one error for input it refuses; the command line turns it into exit status 2.
    """


@dataclass(frozen=True)
class Domain:
    """The values that a parameter may take. Declarative: `numerics.inputs` admits values by it, the command line prints it.

    `low` and `high` bound scalars, and every entry of a vector; `open_low`, `open_high` exclude the bound itself;
    `infinity` admits inf as a value (of an integer or real). A covariance is given in full or, as one row, by its
    diagonal.

    >>> Domain("real", low=0, open_low=True).describe()
    'a real number > 0'
    >>> Domain("choice", choices=("mup", "ntk")).describe()
    'one of mup, ntk'
    """

    kind: Kind
    low: float = -inf
    high: float = inf
    open_low: bool = False
    open_high: bool = False
    infinity: bool = False
    choices: tuple[str, ...] = ()

    def describe(self) -> str:
        """The domain in words, as error messages and the catalogue print it."""
        if self.kind == "choice":
            return "one of " + ", ".join(self.choices)
        noun = {
            "integer": "an integer",
            "real": "a real number",
            "complex": "a complex number",
            "vector": "a vector of finite real numbers",
            "covariance": "a symmetric positive semidefinite matrix, or its diagonal as one row",
            "matrix": "a matrix of finite real numbers",
        }[self.kind]
        bounds = []
        if self.low > -inf:
            bounds.append(f"{'>' if self.open_low else '>='} {self.low:g}")
        if self.high < inf:
            bounds.append(f"{'<' if self.open_high else '<='} {self.high:g}")
        text = noun + ("" if not bounds else " " + " and ".join(bounds))
        return text + (", or inf" if self.infinity else "")


@dataclass(frozen=True)
class Parameter:
    """One named input of a formula: meaning, domain, typical range (for plots and random cases), default if it has one.

    A parameter with `default=None` and `optional=True` may be left out; the formula says what its absence means.
    """

    name: str
    meaning: str
    domain: Domain
    typical: tuple[float, float] | None = None
    default: Any = None
    optional: bool = False
    latex: str | None = None

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is None and not self.optional

    @property
    def symbol(self) -> sympy.Symbol:
        """The SymPy symbol, with the sign and integrality that the domain grants."""
        from sympy import Symbol

        from .words import Word

        if self.domain.kind == "complex":
            return Symbol(self.name)
        facts: dict[str, bool] = {}
        if self.domain.kind in ("integer", "real"):
            facts["real"] = True
            if self.domain.kind == "integer" and not self.domain.infinity:
                facts["integer"] = True
            if self.domain.low > 0 or (self.domain.low == 0 and self.domain.open_low):
                facts["positive"] = True
            elif self.domain.low == 0:
                facts["nonnegative"] = True
        return Word(self.name, self.latex, **facts)


@dataclass(frozen=True)
class Assumption:
    """A hypothesis of a formula. `holds(inputs)` is True or False where the inputs show it, None where only data can.

    `otherwise` says what the formula's value means when the assumption fails (a bound, for instance, becomes 1).
    """

    name: str
    text: str
    holds: Callable[[Mapping[str, Any]], bool | None] = field(default=lambda inputs: None, compare=False)
    otherwise: str = ""


@dataclass(frozen=True)
class Source:
    """Where a statement was first made: title, arXiv id where there is one, place in the paper."""

    title: str
    arxiv: str | None = None
    place: str = ""

    def __str__(self) -> str:
        return self.title + (f", arXiv:{self.arxiv}" if self.arxiv else "") + (f" ({self.place})" if self.place else "")

    def cite(self) -> str:
        """A BibTeX entry; an honest note instead where the result was derived here."""
        if self.title == "derived here":
            return "% derived here; no paper to cite. Cite assay and the formula's id."
        key = "".join(word[0] for word in self.title.split() if word[0].isalpha()).lower()
        lines = [f"@misc{{{key},", f"  title = {{{self.title}}},"]
        if self.arxiv:
            lines += [f"  eprint = {{{self.arxiv}}},", "  archivePrefix = {arXiv},"]
        if self.place:
            lines.append(f"  note = {{{self.place}}},")
        return "\n".join([*lines, "}"])


DERIVED_HERE = Source("derived here")


@dataclass(frozen=True)
class Axiom:
    """A fact that a derivation starts from, and a rival to it.

    `value` is what the derivation uses; `rival` is a wrong fact of the same type. Tests derive once with each rival and
    demand a different result: a derivation that does not notice has not used its axiom.
    """

    name: str
    text: str
    value: Any
    rival: Any


@dataclass(frozen=True)
class Step:
    """One line of a derivation: an equation, and why it holds."""

    why: str
    equation: Any


class Derivation:
    """The steps from axioms to result, in the order taken.

    >>> import sympy
    >>> n, v = sympy.symbols("n v", positive=True)
    >>> d = Derivation()
    >>> total = d.step("variances of independent draws add", sympy.Symbol("Var(sum)"), n * v)
    >>> d.step("a mean is the sum over n", sympy.Symbol("Var(mean)"), total / n**2)
    v/n
    >>> d.result, len(d.steps)
    (v/n, 2)
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def step(self, why: str, left: Any, right: Any) -> Any:
        """Record `left = right` and return `right`, so that the next step can start from it."""
        from sympy import Eq, sympify

        self.steps.append(Step(why, Eq(sympify(left), sympify(right), evaluate=False)))
        return right

    @property
    def result(self) -> Any:
        """The right-hand side of the last step."""
        if not self.steps:
            raise ValueError("a derivation without steps has no result")
        return self.steps[-1].equation.rhs

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)


@dataclass(frozen=True)
class Formula:
    """A closed form under an id, with all that others need in order to use it, check it or break it.

    `state` builds the statement (an expression in the parameters' symbols and in the words they form); `prove` builds
    the derivation from a mapping of axiom names to their values, and may not read the statement. `symbol` is what the
    statement is the value of.
    """

    id: str
    title: str
    symbol: str
    parameters: tuple[Parameter, ...]
    assumptions: tuple[Assumption, ...]
    conventions: str
    source: Source
    state: Callable[[], Any] = field(repr=False, compare=False)
    prove: Callable[[Mapping[str, Any]], Derivation] = field(repr=False, compare=False)
    axioms: tuple[Axiom, ...] = field(repr=False, compare=False)
    example: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def statement(self) -> Any:
        """The closed form as a SymPy expression (or a relation, or a tuple of these)."""
        return self.state()

    def derive(self, breaking: str | None = None) -> Derivation:
        """The steps from the axioms. `breaking` names one axiom to replace by its rival."""
        known = {axiom.name: axiom.value for axiom in self.axioms}
        if breaking is not None:
            rivals = {axiom.name: axiom.rival for axiom in self.axioms}
            if breaking not in rivals:
                raise InputError(f"{self.id} has no axiom {breaking!r}; it starts from {', '.join(rivals) or 'none'}")
            known[breaking] = rivals[breaking]
        return self.prove(known)

    def parameter(self, name: str) -> Parameter:
        """The parameter of that name; an InputError that names the near miss otherwise."""
        from difflib import get_close_matches

        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        names = [parameter.name for parameter in self.parameters]
        near = get_close_matches(name, names, n=1, cutoff=0.5) or [n for n in names if n.lower() == name.lower()]
        hint = f" Did you mean {near[0]}?" if near else ""
        raise InputError(f"{self.id} has no parameter {name!r}; it takes {', '.join(names)}.{hint}")

    @property
    def topic(self) -> str:
        """The part of the id before the dot."""
        return self.id.split(".", 1)[0]

    @property
    def name(self) -> str:
        """The part of the id after the dot."""
        return self.id.split(".", 1)[1]
