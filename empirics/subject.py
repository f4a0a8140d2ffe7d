"""The network under examination, with what is needed to examine it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["Subject"]


@dataclass(frozen=True)
class Subject:
    """What `--model pkg.module:function` returns.

    `loss(output, y)` sums over samples; `data` iterates over batches (x, y); `boundary` names the module at whose output
    a growth step would be inserted; `example` is one input, for tracing. Each comparison says which fields it needs.

    >>> Subject(model=None, boundary="blocks.2").boundary
    'blocks.2'
    """

    model: torch.nn.Module | None
    loss: Callable[..., Any] | None = None
    data: Iterable[Any] | None = None
    boundary: str | None = None
    example: Any = None
