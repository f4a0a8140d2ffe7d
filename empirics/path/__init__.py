"""Path conditioning of PyTorch networks: diag G, and the rescaling that evens it out."""

from .condition import Receipt, path_condition
from .equinorm import equinormalise
from .gram import diag_path_gram

__all__ = ["Receipt", "diag_path_gram", "equinormalise", "path_condition"]
