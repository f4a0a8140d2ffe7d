"""What is gathered while a network's graph is walked: masses, ties, and every parameter with the labels beside it."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor, nn

from theory import InputError

from .labels import Labels
from .squared import Mass, Tape

__all__ = ["Entry", "Signal", "Wiring"]


@dataclass(frozen=True, eq=False)
class Signal:
    """An activation, as far as path conditioning sees it: labels of its shape, and its mass in the squared network.

    `gate`: the output of a smooth activation, which may multiply another signal; `score`: a product of two signals, which
    may only be scaled, masked and sent through softmax. Scores, and gates made of them, have no mass.
    """

    labels: Tensor
    mass: Mass | None
    gate: bool = False
    score: bool = False

    @property
    def flow(self) -> Mass:
        """The mass; refused where there is none."""
        if self.mass is None:
            raise InputError("attention scores or weights are used as an activation; they may only mix the values")
        return self.mass


@dataclass(frozen=True, eq=False)
class Entry:
    """A parameter: its name, its square on the tape, and the labels it feeds and reads, broadcast to its shape."""

    name: str
    mass: Mass
    out: Tensor
    into: Tensor
    frozen: bool


@dataclass(eq=False)
class Wiring:
    """What is gathered while the graph is walked: the tape, the ties, every parameter met, every module's output labels."""

    tape: Tape
    maxpool: str
    smooth: bool
    labels: Labels = field(default_factory=Labels)
    entries: list[Entry] = field(default_factory=list)
    units: dict[str, Tensor] = field(default_factory=dict)
    layers: list[tuple[str, Mass, Mass]] = field(default_factory=list)
    """Of each Linear, in order: name, the mass it reads, the mass it makes."""

    def parameter(self, name: str, theta: nn.Parameter, out: Tensor, into: Tensor) -> Mass:
        """Enter a parameter, `.weight` of a nameless module. One that is frozen must not change: its labels are pinned."""
        frozen = not theta.requires_grad
        if frozen:
            self.labels.pin(out)
            self.labels.pin(into)
        self.entries.append(Entry(name.removeprefix("."), self.tape.parameter(theta), out, into, frozen))
        return self.entries[-1].mass
