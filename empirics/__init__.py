"""Networks: the same quantities, measured on PyTorch models."""
