"""Marchenko-Pastur density and distribution function at a million points: time and error against scikit-rmt's, in one run.

    python benchmarks/marchenko_pastur.py [--venv FOLDER] [--points N]

scikit-rmt pins NumPy and SciPy from before 2024, so it gets a virtual environment of its own (kept in FOLDER, default
under the user's cache). Where it cannot be installed the script says so and ends with status 0. Both sides are timed as the
best of 7 calls on one thread; errors are against ball arithmetic at 41 points a ratio, from below the bulk to above it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import venv
from pathlib import Path
from time import perf_counter

RATIOS = (0.25, 0.5, 1.0, 2.0)
PEER = "scikit-rmt==2.1.1"
REPEATS = 7

PEER_SCRIPT = """
import json, sys
from time import perf_counter
import numpy as np
from skrmt.ensemble.spectral_law import MarchenkoPasturDistribution

ask = json.load(sys.stdin)
answer = []
for ratio, points in zip(ask["ratios"], ask["points"]):
    law = MarchenkoPasturDistribution(ratio=ratio)
    x = np.linspace(*ask["spans"][str(ratio)], ask["count"])
    row = {"ratio": ratio}
    for name in ("pdf", "cdf"):
        function, times = getattr(law, name), []
        for _ in range(ask["repeats"]):
            start = perf_counter()
            function(x)
            times.append(perf_counter() - start)
        with np.errstate(all="ignore"):
            row[name] = {"seconds": min(times), "values": [float(v) for v in function(np.array(points))]}
    answer.append(row)
json.dump({"rows": answer, "numpy": np.__version__}, sys.stdout)
"""


def peer_python(folder: Path) -> Path | None:
    """The interpreter of an environment that holds scikit-rmt; None where it cannot be made."""
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    check = [str(python), "-c", "import skrmt.ensemble.spectral_law"]
    if subprocess.run(check, capture_output=True, check=False).returncode:
        done = subprocess.run(
            [str(python), "-m", "pip", "install", "-q", PEER], capture_output=True, text=True, check=False
        )
        if done.returncode or subprocess.run(check, capture_output=True, check=False).returncode:
            print(f"skipped: {PEER} cannot be installed here.\n{done.stderr.strip().splitlines()[-1:]}")
            return None
    return python


def best(function, x) -> float:
    """Seconds of the fastest of a few calls."""
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        function(x)
        times.append(perf_counter() - start)
    return min(times)


def main() -> None:
    """Print one row a ratio and function: seconds, ratio of times, largest absolute errors."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import numpy as np

    from numerics import predict
    from numerics.mp import MarchenkoPastur

    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--venv", type=Path, default=home / "assay" / "venv-scikit-rmt")
    options.add_argument("--points", type=int, default=10**6)
    asked = options.parse_args()
    python = peer_python(asked.venv)
    if python is None:
        return
    laws = {ratio: MarchenkoPastur(ratio) for ratio in RATIOS}
    spans = {ratio: (law.edges[0] / 2, 1.1 * law.edges[1]) for ratio, law in laws.items()}
    # The first of them lies below the bulk, where for ratio 2 half of the mass must be counted.
    spots = [np.linspace(spans[ratio][0] or 1e-3, spans[ratio][1], 41).tolist() for ratio in RATIOS]
    question = {
        "ratios": RATIOS,
        "points": spots,
        "spans": {str(ratio): span for ratio, span in spans.items()},
        "count": asked.points,
        "repeats": REPEATS,
    }
    done = subprocess.run(
        [str(python), "-c", PEER_SCRIPT], input=json.dumps(question), capture_output=True, text=True, check=True
    )
    peer = json.loads(done.stdout)
    print(f"{asked.points} points, one thread; {PEER} on NumPy {peer['numpy']}, ours on NumPy {np.__version__}")
    print(f"{'ratio':>6} {'':4} {'ours s':>8} {'peer s':>8} {'peer/ours':>9} {'our error':>10} {'peer error':>10}")
    for ratio, points, row in zip(RATIOS, spots, peer["rows"], strict=True):
        x = np.linspace(*spans[ratio], asked.points)
        for name, function, id in (("pdf", laws[ratio].density, "mp.density"), ("cdf", laws[ratio].cdf, "mp.cdf")):
            truth = np.array([float(predict(id, {"x": point, "ratio": ratio}, digits=20)) for point in points])
            ours, theirs = best(function, x), row[name]["seconds"]
            errors = [
                np.abs(np.asarray(values) - truth).max() for values in (function(np.array(points)), row[name]["values"])
            ]
            print(
                f"{ratio:6g} {name:4} {ours:8.4f} {theirs:8.4f} {theirs / ours:9.1f} {errors[0]:10.1e} {errors[1]:10.1e}"
            )


if __name__ == "__main__":
    main()
