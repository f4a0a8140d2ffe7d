"""Scalars with a name that people read: mu'Sigma mu in a terminal, its LaTeX and MathML on a page."""

from __future__ import annotations

from typing import Any

from sympy import Symbol

GREEK = {"mu": "\u03bc", "Sigma": "\u03a3", "delta": "\u03b4", "kappa": "\u03ba", "sigma": "\u03c3", "theta": "\u03b8"}

__all__ = ["Word"]


class Word(Symbol):
    """A real symbol that prints as `text` in plain form and as `latex` in LaTeX.

    Two words are equal when their texts and facts are.

    >>> w = Word("mu'Sigma mu", r"\\mu^\\top\\Sigma\\mu")
    >>> print(w + 1)
    mu'Sigma mu + 1
    >>> from sympy import latex
    >>> latex(w**2)
    '\\\\left(\\\\mu^\\\\top\\\\Sigma\\\\mu\\\\right)^{2}'
    """

    _latex_text: dict[str, str] = {}

    def __new__(cls, text: str, latex: str | None = None, **facts: bool) -> Word:
        word = super().__new__(cls, text, **({"real": True} | facts))
        if latex is not None:
            cls._latex_text[text] = latex
        return word

    def _mathml_presentation(self, printer: Any) -> Any:
        text = self.name.replace("'", "\u1d40").replace("||", "\u2016").replace("^2", "\u00b2")
        for name, letter in GREEK.items():
            text = text.replace(name, letter)
        node = printer.dom.createElement("mi")
        node.appendChild(printer.dom.createTextNode(text.replace(" ", "")))
        return node

    def _latex(self, printer: object, exp: str | None = None) -> str:
        body = self._latex_text.get(self.name, self.name)
        return body if exp is None else rf"\left({body}\right)^{{{exp}}}"
