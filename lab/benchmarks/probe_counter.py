"""Whether the embedded model knows a count that it answers wrongly.

    python lab/benchmarks/probe_counter.py

For rows cut off at each length: the share of counts that a linear map reads off the states to
within a half, on rows that it was not fitted to, with a 95 % interval over rows (bootstrap); the
same from the position alone; and how many right answers the model gives at that length.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyechart.harness.plan.plan import make_sample, plan
from eyechart.harness.spec import Line
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import ModelSettings
from eyechart_lab.probe.engine import Probe
from eyechart_lab.probe.hf.inside import open_tiny
from eyechart_lab.probe.measures.ridge import Ridges
from eyechart_lab.probe.measures.states import States
from eyechart_lab.probe.passes import Row, measure
from eyechart_lab.probe.places import running_counts

TASK = "counting/bernoulli"
LENGTHS = (10, 15, 20, 25, 30, 35, 40, 50, 60, 80, 120)
ROWS = 40
"""Half of them are fitted to; so many answers are asked at each length."""
RIDGE = 4
"""Place of the ridge of 0.01 among those that are tried."""
DRAWS = 2000
Floats = NDArray[Any]


def main() -> None:
    inside = open_tiny(ModelSettings("tiny"))
    task = open_task(TASK, built_in_files()[TASK], trial=False)
    draw = np.random.default_rng(0)
    for separator in ("none", "comma"):
        planned = plan(task, lengths=[LENGTHS[-1]], samples=ROWS, axes={"separator": [separator]})
        (condition,) = planned.conditions
        probe = Probe.__new__(Probe)
        probe._plan, probe._inside = planned, inside
        states: dict[int, list[Floats]] = {}
        counts = []
        for index in range(ROWS):
            sample = planned.sample(condition, planned.lines[0], index)
            scene, running = probe._scene(sample), running_counts(planned, sample)
            assert scene is not None
            assert running is not None
            counts.append(np.array(running, float))
            seen = States(scene.places.ends, frozenset(["residual"]))
            inside.forward(scene.ids, seen)
            for layer, stream in seen.streams.items():
                states.setdefault(layer, []).append(stream.astype(float))
        print(f"{TASK}, separator {separator}")
        for length in LENGTHS:
            right = 0.0
            for index in range(ROWS):
                sample = make_sample(task, condition, Line.exact(length), index, 0)
                scene = probe._scene(sample)
                assert scene is not None
                (measured,) = measure(inside, [Row(scene, None, ["answer"])])
                found = measured.readings["answer"]
                right += next(one.value for one in found if one.quantity == "greedy")
            known = np.concatenate([row[:length] for row in counts[: ROWS // 2]])
            asked = [row[:length] for row in counts[ROWS // 2 :]]
            best = np.zeros(1)
            for of_layer in states.values():
                x = np.concatenate([rows[:length] for rows in of_layer[: ROWS // 2]]).astype(float)
                near = shares(x, known, [rows[:length] for rows in of_layer[ROWS // 2 :]], asked)
                best = max(best, near, key=np.mean)
            places = np.arange(length, dtype=float)[:, None]
            alone = shares(np.tile(places, (ROWS // 2, 1)), known, [places] * len(asked), asked)
            means = draw.choice(best, (DRAWS, len(best))).mean(axis=1)
            low, high = np.quantile(means, [0.025, 0.975])
            print(
                f"{length:5}  readable {best.mean():.2f} ({low:.2f} to {high:.2f})"
                f"  from position {alone.mean():.2f}  right answers {right / ROWS:.2f}"
            )


def shares(x: Floats, y: Floats, new: list[Floats], counts: list[Floats]) -> Floats:
    """For each of the new rows, the share of its counts that is read to within a half."""
    read = Ridges(x, y[:, None]).read(np.concatenate(new).astype(float))[RIDGE, :, 0]
    near = np.abs(read - np.concatenate(counts)) <= 0.5
    return np.array([part.mean() for part in np.split(near, len(counts))])


if __name__ == "__main__":
    main()
