"""What alignment costs beside training: ratios of medians, measured alternately in one run on one thread.

    OMP_NUM_THREADS=1 python benchmarks/alignment_cost.py [--repeats 7]

The step is forward and backward pass of an 8-block residual perceptron, width 512, batch 256 (no optimiser: the
stricter denominator). Capture behind block c runs c blocks forward and 8 - c forward and backward to activations alone:
predicted (c + 2 (8 - c))/24 of a step.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch.nn.functional import cross_entropy

from empirics.alignment import alignment_statistics, capture
from empirics.networks import cross_entropy_sum, residual_mlp

BLOCKS, WIDTH, BATCH = 8, 512, 256


def alternately(works: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each work, in turns so that a change of load meets them all."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            if turn:  # the first turn warms up
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    draws = torch.Generator().manual_seed(0)
    network = residual_mlp(WIDTH, BLOCKS, seed=0)
    with torch.no_grad():
        network.head.weight.normal_(std=WIDTH**-0.5, generator=draws)
    x, y = torch.randn(BATCH, 64, generator=draws), torch.randint(10, (BATCH,), generator=draws)

    def step() -> None:
        network.zero_grad()
        cross_entropy(network(x), y).backward()

    def captured(blocks: int, probe: bool = False) -> Callable[[], object]:
        boundary = f"blocks.{blocks - 1}" if blocks else "embed"
        return lambda: capture(network, boundary, (x, y), cross_entropy_sum, probe=probe)

    q = capture(network, f"blocks.{BLOCKS // 2 - 1}", (x, y), cross_entropy_sum).gradients
    works: dict[str, Callable[[], object]] = {"step": step}
    works |= {f"capture behind block {c} of {BLOCKS}": captured(c) for c in (0, 2, 4, 6)}
    works |= {f"capture behind block 4 of {BLOCKS}, probes included": captured(4, probe=True)}
    works |= {f"statistics and jackknife, n={BATCH}, d={WIDTH}": lambda: alignment_statistics(q)}
    seconds = alternately(works, repeats)
    print(f"one step: {seconds['step']:.3f} s")
    for name, value in seconds.items():
        if name != "step":
            print(f"{value / seconds['step']:8.4f} of a step  {name}")


if __name__ == "__main__":
    main()
