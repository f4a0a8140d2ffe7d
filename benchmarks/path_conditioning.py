"""Path conditioning against the authors' code and against training: ratios, in one run on one thread.

    OMP_NUM_THREADS=1 python benchmarks/path_conditioning.py [--peer FOLDER] [--nets mlp,autoencoder,...] [--repeats 3]

FOLDER is a clone of github.com/Artim436/pathcond, by its users' own choice; its code is imported from there and from
nowhere else. Both are given the same networks and judged on one objective, in the authors' conventions: the largest
mass of a pooling window, batch normalisation left out, F/p = log sum_i g_i e^(Bz)_i - mean_i (Bz)_i. Their time is that of
their 10 sweeps; ours that of tracing, diag G, reduction and the solution to a certificate. The exact conventions (sum
over the window, batch normalisation as in `path_condition`) follow, with the cost of a whole call against a step of training.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
import types
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss, relu

from empirics.path import path_condition
from empirics.path.gram import analyse
from numerics.path import solve

BATCH, EPOCH = 128, 50_000


def mlp(widths: list[int]) -> nn.Sequential:
    """Biases in all layers but the last, as in the authors' networks."""
    layers: list[nn.Module] = []
    for k, (below, above) in enumerate(pairwise(widths)):
        last = k == len(widths) - 2
        layers += [nn.Linear(below, above, bias=not last), *([] if last else [nn.ReLU()])]
    return nn.Sequential(*layers)


def fully_convolutional(norm: bool) -> nn.Sequential:
    """Nine convolutions of Gitman and Ginsburg's CIFAR network, with biases."""
    sizes = [
        (3, 128, 3),
        (128, 128, 3),
        (128, 128, 3),
        (128, 256, 3),
        (256, 256, 3),
        (256, 256, 3),
        (256, 320, 3),
        (320, 320, 1),
        (320, 10, 1),
    ]
    layers: list[nn.Module] = []
    for k, (below, above, size) in enumerate(sizes, 1):
        layers.append(nn.Conv2d(below, above, size, padding=size // 2))
        layers += [nn.BatchNorm2d(above)] if norm and k in (3, 6) else []
        layers += [nn.ReLU()] + ([nn.MaxPool2d(3, 2, 1)] if k in (3, 6) else [])
    return nn.Sequential(*layers, nn.AvgPool2d(8), nn.Flatten())


class Block(nn.Module):
    """Two convolutions beside a convolved shortcut; names as their code expects them."""

    def __init__(self, below: int, above: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(below, above, 3, stride, 1, bias=False), nn.BatchNorm2d(above)
        self.conv2, self.bn2 = nn.Conv2d(above, above, 3, 1, 1, bias=False), nn.BatchNorm2d(above)
        self.shortcut = nn.Sequential(nn.Conv2d(below, above, 1, stride, bias=False), nn.BatchNorm2d(above))

    def forward(self, x: Tensor) -> Tensor:
        """(n, below, H, W) to (n, above, H/stride, W/stride)."""
        return relu(self.bn2(self.conv2(relu(self.bn1(self.conv1(x))))) + self.shortcut(x))


class ResNet18(nn.Module):
    """The CIFAR form: a 3 x 3 stem without pooling, shortcuts of type C."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64)
        below = 64
        for k, above in enumerate((64, 128, 256, 512), 1):
            setattr(self, f"layer{k}", nn.Sequential(Block(below, above, 1 if k == 1 else 2), Block(above, above, 1)))
            below = above
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(512, 10)

    def forward(self, x: Tensor) -> Tensor:
        """(n, 3, 32, 32) to (n, 10)."""
        x = relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (lambda: mlp([3072, *[500] * 5, 10]), (3072,)),
    "autoencoder": (lambda: mlp([784, 1000, 500, 250, 30, 250, 500, 1000, 784]), (784,)),
    "fcn": (lambda: fully_convolutional(norm=False), (3, 32, 32)),
    "fcn_bn": (lambda: fully_convolutional(norm=True), (3, 32, 32)),
    "resnet18_c": (ResNet18, (3, 32, 32)),
}


def as_they_see_it(model: nn.Module, *, pools: bool = True) -> nn.Module:
    """A copy whose lifting has the authors' objective: no batch normalisation, and averages not squared.

    Their squared network keeps the weights 1/k^2 of an average over k x k, where the lifting has 1/k^4: a divisor of k does
    that for ours. With `pools=False`, which is what their code is given, averages stay as they are.
    """
    twin = copy.deepcopy(model)
    for name, module in list(twin.named_modules()):
        parent, _, child = name.rpartition(".")
        if isinstance(module, nn.BatchNorm2d):
            setattr(twin.get_submodule(parent), child, nn.Identity())
        if pools and isinstance(module, (nn.AvgPool2d, nn.AdaptiveAvgPool2d)):
            size = 8 if isinstance(module, nn.AvgPool2d) else 4
            setattr(twin.get_submodule(parent), child, nn.AvgPool2d(size, divisor_override=size))
    return twin


def load_peer(folder: str) -> Any:
    """Their solver from their clone; what it imports and does not need here is stubbed."""
    for name, content in (
        ("torchvision", {}), ("torchvision.models", {}), ("torchvision.models.resnet", {"BasicBlock": Block}),
        ("torchvision.datasets", {}), ("torchvision.transforms", {}), ("tqdm", {"tqdm": lambda each, **_: each}),
    ):  # fmt: skip
        if name not in sys.modules:
            sys.modules[name] = types.ModuleType(name)
            for key, value in content.items():
                setattr(sys.modules[name], key, value)
    sys.path.append(str(Path(folder).resolve()))
    from pathcond import rescaling_polyn  # type: ignore[import-not-found]

    return rescaling_polyn.optimize_rescaling_polynomial


def ours(model: nn.Module, example: Tensor, maxpool: str) -> tuple[Any, dict[str, np.ndarray], Any]:
    """(solution, (Bz) by parameter, analysis): all that `path_condition` does before it touches the model."""
    analysis = analyse(model, example, maxpool=maxpool)
    objective, start, _ = analysis.criterion()
    found = solve(objective, start=start)
    z = np.concatenate(([0.0], found.z))
    rows = {e.name: z[i] - z[o] for e, o, i in zip(analysis.wiring.entries, analysis.out, analysis.into, strict=True)}
    return found, rows, analysis


def objective(analysis: Any, rows: dict[str, Any]) -> float:
    """F/p over the parameters of the analysis for (Bz) by name."""
    total, mean, count = [], 0.0, 0
    for entry, value, exponent in analysis.grams():
        bz = np.broadcast_to(rows[entry.name], value.shape)
        total.append(np.log(float((value.numpy() * np.exp(bz)).sum())) + exponent * np.log(2))
        mean, count = mean + float(bz.sum()), count + value.numel()
    return float(np.logaddexp.reduce(total)) - mean / count


def best_of(repeats: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """(least seconds, last result)."""
    seconds, result = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def step_seconds(model: nn.Module, shape: tuple[int, ...], name: str) -> float:
    """Forward and backward pass of a batch of 128, no optimiser: the stricter denominator."""
    x = torch.randn(BATCH, *shape)

    def step() -> None:
        model.zero_grad()
        y = model(x)
        (
            mse_loss(y, x) if name == "autoencoder" else cross_entropy(y, torch.zeros(BATCH, dtype=torch.int64))
        ).backward()

    step()
    seconds, _ = best_of(2, step)
    model.zero_grad()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a clone of the authors' repository")
    parser.add_argument("--nets", default=",".join(NETWORKS))
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    peer = load_peer(options.peer) if options.peer else None
    if peer is not None:  # TorchScript compiles at the first call
        peer(mlp([4, 5, 3]), n_iter=10, tol=1e-2)
    print(f"{'network':12} {'theirs s':>9} {'ours s':>8} {'ratio':>6}  F/p: start   theirs     ours      certificate")
    for name in options.nets.split(","):
        build, shape = NETWORKS[name]
        torch.manual_seed(0)
        model, example = build(), torch.randn(1, *shape)
        plain = as_they_see_it(model)
        theirs_s, theirs_value = float("nan"), float("nan")
        seconds, (found, rows, analysis) = best_of(options.repeats, lambda: ours(plain, example, "max"))  # noqa: B023
        if peer is not None:
            bare = as_they_see_it(model, pools=False)
            theirs_s, (bz, _) = best_of(1, lambda: peer(bare, n_iter=10, tol=1e-2, resnet=name == "resnet18_c"))  # noqa: B023
            sizes = [each.numel() for each in plain.parameters()]
            names = [each for each, _ in plain.named_parameters()]
            parts = dict(zip(names, torch.split(bz.to(torch.float64), sizes), strict=True))
            shapes = dict(plain.named_parameters())
            theirs_value = objective(
                analysis, {each: part.view(shapes[each].shape).numpy() for each, part in parts.items()}
            )
        start = objective(analysis, dict.fromkeys(rows, np.zeros(1)))
        print(
            f"{name:12} {theirs_s:9.3f} {seconds:8.3f} {theirs_s / seconds:6.1f}  {start:10.5f} {theirs_value:9.5f} "
            f"{objective(analysis, rows):9.5f}  {found.certificate:.1e} (Newton {found.steps}, products {found.products})"
        )
        whole, receipt = best_of(1, lambda: path_condition(model, example))  # noqa: B023
        step = step_seconds(model, shape, name)
        epoch = whole / step * BATCH / EPOCH
        print(f"{'':12} exact: {receipt}")
        print(
            f"{'':12} a whole call: {whole:.3f} s, {whole / step:.2f} steps of {BATCH}, {epoch:.2%} of an epoch of {EPOCH}"
        )


if __name__ == "__main__":
    main()
