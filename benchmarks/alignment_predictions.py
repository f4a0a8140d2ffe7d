"""The exact Gaussian probability at growing dimension, as a ratio to the eigendecomposition it starts from.

Run with one thread: OMP_NUM_THREADS=1 python benchmarks/alignment_predictions.py
"""

import time

import numpy as np

from numerics import predict


def best(function, repeats=3):
    """Shortest of a few runs, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    print(f"{'d':>6} {'covariance':>11} {'probability':>12} {'floor':>10} {'ratio':>7}")
    for d in (100, 300, 1000):
        rng = np.random.default_rng(d)
        factor = rng.standard_normal((d, d)) / np.sqrt(d)
        full = factor @ factor.T + 0.1 * np.eye(d)
        full = (full + full.T) / 2
        mu = rng.standard_normal(d) / np.sqrt(d)
        floor = best(lambda full=full: np.linalg.eigh(full))
        # A diagonal law needs no decomposition: its time is held against the same floor, which it may undercut.
        for name, Sigma in (("full", full), ("diagonal", np.diag(full).copy())):
            inputs = {"mu": mu, "Sigma": Sigma, "M": 8, "K": 32}
            seconds = best(lambda inputs=inputs: predict("alignment.gaussian", inputs))
            print(f"{d:>6} {name:>11} {seconds:>10.3f} s {floor:>8.5f} s {seconds / floor:>7.1f}")


if __name__ == "__main__":
    main()
