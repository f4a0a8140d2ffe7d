"""`assay compare spectra`: which singular values of a network's weights does noise not explain?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from empirics import Subject
from theory import InputError

from .subjects import require

__all__ = ["SpectraComparison", "compare_spectra"]


@dataclass(frozen=True)
class SpectraComparison:
    """The layers of each checkpoint, judged; `names` are the checkpoints' (or the model's)."""

    names: tuple[str, ...]
    layers: tuple[tuple[Any, ...], ...]
    level: float

    def to_dict(self) -> dict[str, Any]:
        """Plain types, as `--json` prints and the receipt stores them."""
        found = [
            {"name": name, "layers": [layer.to_dict() for layer in layers]}
            for name, layers in zip(self.names, self.layers, strict=True)
        ]
        return {"target": "spectra", "level": self.level, "checkpoints": found}

    def __str__(self) -> str:
        from textwrap import wrap

        lines = []
        for name, layers in zip(self.names, self.layers, strict=True):
            lines += [name, f"  {'weight':<30}{'shape':>11} {'out':>4} {'energy':>6} {'KS':>6} {'p':>6}  verdict"]
            for layer in layers:
                shape = "x".join(map(str, layer.shape))[:11]
                label = layer.name if len(layer.name) <= 29 else "..." + layer.name[-26:]
                if layer.spectrum is None:
                    continue
                s = layer.spectrum
                ks, p = ("-", "-") if s.ks is None else (f"{s.ks:.3f}", f"{s.p_value:.3f}")
                lines.append(
                    f"  {label:<30}{shape:>11} {len(s.outliers):>4} {s.energy:>6.2f} {ks:>6} {p:>6}  {s.verdict}"
                )
            refused = [layer for layer in layers if layer.spectrum is None]
            if refused:
                lines.append(f"  not judged: {len(refused)}")
                for layer in refused[:8]:
                    lines += wrap(
                        f"{layer.name}: {layer.refusal}", 78, initial_indent="    ", subsequent_indent="      "
                    )
                if len(refused) > 8:
                    lines.append(f"    and {len(refused) - 8} more")
            counts: dict[str, int] = {}
            for layer in layers:
                if layer.spectrum is not None:
                    counts[layer.spectrum.verdict] = counts.get(layer.spectrum.verdict, 0) + 1
            lines += ["  " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()), ""]
        lines.append(f"out: outliers at level {self.level:g}; KS and p: the other eigenvalues against simulated noise")
        return "\n".join(lines)


def compare_spectra(files: Sequence[str], subject: Subject | None = None, *, level: float = 1e-3) -> SpectraComparison:
    """Judge every weight matrix of checkpoints, or of a subject's model, against the law of noise.

    Several checkpoints are steps of one training: each after the first is also compared with the first, as the weights
    at initialisation. Raises InputError where there is nothing to read, or no weight to judge.
    """
    from empirics.checkpoints import load_weights
    from empirics.spectra import weight_spectra

    if bool(files) == (subject is not None):
        raise InputError("compare spectra takes checkpoint files, or --model, and one of the two")
    if subject is not None:
        model = require(subject, "spectra", "model")["model"]
        return SpectraComparison((type(model).__name__,), (weight_spectra(model, level=level),), level)
    first: Any = None
    found = []
    for name in files:
        weights = load_weights(name)
        found.append(weight_spectra(weights, initial=first, level=level))
        first = weights if first is None else first
    return SpectraComparison(tuple(map(str, files)), tuple(found), level)
