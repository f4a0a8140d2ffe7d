"""Scalars with a name that people read: mu'Sigma mu in a terminal, its LaTeX and MathML on a page."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from sympy import Symbol
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.pretty.stringpict import prettyForm

__all__ = ["Word", "latex_of"]

GREEK = {"mu": "μ", "Sigma": "Σ", "delta": "δ", "kappa": "κ", "sigma": "σ", "theta": "θ"}


class Word(Symbol):
    """A real symbol that prints as `text` in plain form and as `latex` in LaTeX, bracketed under a power if it is long.

    Two words are equal when their texts and facts are.

    >>> w = Word("mu'Sigma mu", r"\\mu^\\top\\Sigma\\mu")
    >>> print(w**2 + 1)
    (mu'Sigma mu)**2 + 1
    >>> print(latex_of(w**2))
    \\left(\\mu^\\top\\Sigma\\mu\\right)^{2}
    """

    _latex_text: ClassVar[dict[str, str]] = {}

    def __new__(cls, text: str, latex: str | None = None, **facts: bool) -> Word:
        """The word; `latex` may be left out where it has been given before, or is the text itself."""
        word = super().__new__(cls, text, **({"real": True} | facts))
        if latex is not None:
            cls._latex_text[text] = latex
        return word

    @property
    def precedence(self) -> int:
        """A product of letters (a'b) binds as a product; a symbol, a norm or a trace as an atom."""
        return PRECEDENCE["Mul" if "'" in self.name else "Atom"]

    def _pretty(self, printer: Any) -> prettyForm:
        if self.name.replace("_", "").isalnum():
            return printer._print_Symbol(Symbol(self.name))
        return prettyForm(self.name, binding=prettyForm.MUL if "'" in self.name else prettyForm.ATOM)

    def _mathml_presentation(self, printer: Any) -> Any:
        text = self.name.replace("'", "ᵀ").replace("||", "‖").replace("^2", "²")
        for name, letter in GREEK.items():
            text = text.replace(name, letter)
        if "_" in text:
            base, _, index = text.partition("_")
            node = printer.dom.createElement("msub")
            for part in (base, index):
                node.appendChild(self._identifier(printer, part))
            return node
        return self._identifier(printer, text.replace(" ", ""))

    @staticmethod
    def _identifier(printer: Any, text: str) -> Any:
        node = printer.dom.createElement("mi")
        node.appendChild(printer.dom.createTextNode(text))
        return node

    def _latex(self, printer: Any) -> str:
        return self._latex_text.get(self.name) or printer._print_Symbol(Symbol(self.name))


def latex_of(expression: Any) -> str:
    """LaTeX of an expression in words.

    SymPy brackets a word under a power twice, as a product and as something with a superscript: once will do.
    """
    from sympy import latex

    return re.sub(r"\\left\(\\left\(([^()]*)\\right\)\\right\)", r"\\left(\1\\right)", latex(expression))
