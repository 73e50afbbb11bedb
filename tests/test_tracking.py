"""Results of runs in trackers of experiments: one hook, and the real packages without a network."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import eyechart
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.face import tracking
from eyechart.harness.face.tracking import LoggedRun, OpenTracker, logged_run
from eyechart.harness.satellites.tracking import missing
from tests.plugged import plug, site

if TYPE_CHECKING:
    from tests.conftest import Lab

__all__ = ["site"]
OWN = """
import json, threading
from pathlib import Path

class Own:
    def log(self, run):
        print("talk of the package")
        with Path("{log}").open("a") as file:
            file.write(json.dumps([run.key, run.name, run.config, run.metrics, run.notes,
                                   run.accuracies]) + "\\n")
        return "a file"

class Away:
    def log(self, run):
        raise OSError("no route\\nto the server")

class Ends:
    def log(self, run):
        raise SystemExit(7)

class Interrupts:
    def log(self, run):
        raise KeyboardInterrupt

class Hangs:
    def log(self, run):
        threading.Event().wait()

def own():
    return Own()

def away():
    return Away()

def ends():
    return Ends()

def interrupts():
    return Interrupts()

def hangs():
    return Hangs()

def leaves():
    raise SystemExit(7)

def broken():
    raise ValueError("broken")
"""
ASKED = ("--lengths", "3,5", "--samples", "4")


@pytest.fixture
def log(lab: Lab, site: Path) -> Path:
    """Where the tracker `own` of another package writes; there are others that fail."""
    path = lab.folder / "log.jsonl"
    names = ("own", "away", "broken", "ends", "interrupts", "hangs", "leaves")
    trackers = {name: f"own_tracker:{name}" for name in names}
    files = {"own_tracker.py": OWN.replace("{log}", str(path))}
    plug(site, "own-tracker", {"eyechart.trackers": trackers}, files=files)
    return path


def logged(path: Path) -> list[dict[str, Any]]:
    names = ("key", "name", "config", "metrics", "notes", "accuracies")
    return [
        dict(zip(names, json.loads(line), strict=True)) for line in path.read_text().splitlines()
    ]


class Talks:
    """A tracker that prints from Python, from C and from a process."""

    def log(self, run: LoggedRun) -> str:
        sys.stdout.write("talk")
        os.write(1, b"talk")
        subprocess.run(["echo", run.name], check=True)
        return "nowhere"


def test_a_tracker_prints_nothing_into_a_document(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The results of the command are alone on stdout, with `--json` as without."""
    logged = LoggedRun("key", "talk", {}, {}, {}, {})
    monkeypatch.setattr(tracking, "logged_run", lambda _run: logged)
    said: list[str] = []
    run: Any = None
    tracking.log_run([OpenTracker("talks", Talks())], run, said.append, said.append)
    os.write(1, b"{}")
    assert said == ["talk is logged to nowhere"]
    assert capfd.readouterr().out == "{}"


class TestHook:
    """`--log-to`."""

    def test_a_run_is_logged_with_the_numbers_of_its_tables(self, lab: Lab, log: Path) -> None:
        """Effective lengths with intervals, accuracies by length, settings; once more as it
        grows.
        """
        done = lab.bench_run(*ASKED, "--log-to", "own", "--seed", "7")
        assert done.code == 0
        assert "is logged to a file" in done.err
        assert "talk of the package" not in done.out + done.err
        (first,) = logged(log)
        run = eyechart.load_run(lab.the_run())
        assert first["name"] == f"{run.model} lab/ones"
        assert first["config"]["seed"] == 7
        assert (first["config"]["model"], first["config"]["task"]) == (run.model, "lab/ones")
        for _, row in run.conditions.iterrows():
            for name in ("effective_length", "area", "area_ci_low", "n", "overall_accuracy"):
                known = first["metrics"].get(f"{row['separator']}/{name}", math.nan)
                assert known == row[name] or (math.isnan(known) and math.isnan(row[name]))
        for _, cell in run.cells.iterrows():
            at = first["accuracies"][str(cell["length"])]
            for name in ("accuracy", "ci_low", "ci_high", "n"):
                assert at[f"{cell['separator']}/{name}"] == cell[name]
        more = ("--lengths", "3,5,9", *ASKED[2:], "--seed", "7")
        assert lab.bench_run(*more, "--log-to", "own").code == 0
        _, second = logged(log)
        assert second["key"] == first["key"]
        assert set(second["accuracies"]) == {"3", "5", "9"}
        assert lab.bench_run(*ASKED, "--seed", "8", "--log-to", "own").code == 0
        assert logged(log)[-1]["key"] != first["key"]

    def test_one_condition_has_no_name_before_its_numbers(self, lab: Lab, log: Path) -> None:
        """A tracker then has `effective_length`, in all runs alike."""
        axis = ("--axis", "separator=none")
        assert lab.bench_run(*ASKED, *axis, "--log-to", "own").code == 0
        (found,) = logged(log)
        assert "area" in found["metrics"]
        assert found["metrics"] == dict(logged_run(read_run(lab.the_run())).metrics)
        assert found["notes"]["one_threshold"] in ("yes", "no")

    @pytest.mark.parametrize(
        ("name", "why"),
        [
            ("ends", "SystemExit: 7"),
            ("interrupts", "KeyboardInterrupt"),
            ("hangs", "TimeoutError: it did not end within 0.01 s"),
        ],
    )
    def test_a_tracker_ends_no_command(self, lab: Lab, log: Path, name: str, why: str) -> None:
        """Whatever it raises, and where it does not end: a line says so of a complete run."""
        assert log
        lab.monkeypatch.setattr(tracking, "_LIMIT_S", 0.01 if name == "hangs" else 300)
        done = lab.bench_run(*ASKED, "--log-to", name)
        assert done.code == 0
        (line,) = (line for line in done.lines if f"is not logged to {name}: " in line)
        assert why in line
        assert (lab.the_run() / "table.csv").exists()

    def test_a_tracker_that_ends_the_program_as_it_is_opened(self, lab: Lab, log: Path) -> None:
        assert log
        lab.bench_run(*ASKED, "--log-to", "leaves").one_line(2, "own-tracker", "SystemExit: 7")

    def test_a_tracker_that_fails_fails_no_run(self, lab: Lab, log: Path) -> None:
        """One line of warning; the tables are written, and the other tracker has the run."""
        done = lab.bench_run(*ASKED, "--log-to", "away,own")
        assert done.code == 0
        assert (lab.the_run() / "table.csv").exists()
        (line,) = (line for line in done.lines if "is not logged to away: " in line)
        assert "OSError" in line
        assert "its folder has all that was answered" in line
        assert len(logged(log)) == 1

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("onw", ["--log-to has no tracker 'onw'", "'own'"]),
            ("Own tracker", ["--log-to is a tracker such as mlflow"]),
        ],
    )
    @pytest.mark.usefixtures("log")
    def test_an_unknown_tracker_is_one_line_before_anything_is_asked(
        self, lab: Lab, name: str, said: list[str]
    ) -> None:
        """No run is begun."""
        lab.bench_run(*ASKED, "--log-to", name).one_line(2, *said)
        assert not (lab.out / "runs").exists()

    @pytest.mark.usefixtures("log")
    def test_a_tracker_that_cannot_be_opened_is_named(self, lab: Lab) -> None:
        """With its package."""
        done = lab.bench_run(*ASKED, "--log-to", "broken")
        assert done.code != 0
        assert "own-tracker 1.0" in done.err
        assert "opening it raised ValueError" in done.err

    @pytest.mark.parametrize("name", ["mlflow", "trackio", "wandb"])
    def test_a_missing_package_is_named(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        """The error comes before anything is asked, and names the extra to install."""
        monkeypatch.setitem(vars(missing), "find_spec", lambda _name: None)
        done = lab.bench_run(*ASKED, "--log-to", name)
        assert done.code != 0
        (line,) = done.lines
        assert f"--log-to {name} needs the package {name}: " in line
        assert f"[{name}]" in line
        assert not (lab.out / "runs").exists()

    def test_the_dry_run_logs_nothing(self, lab: Lab, log: Path) -> None:
        """It sends nothing."""
        assert lab.bench_run(*ASKED, "--log-to", "own", "--dry-run").code == 0
        assert not log.exists()


class TestDoors:
    """Python, files, studies."""

    def test_python(self, lab: Lab, log: Path) -> None:
        """With the same numbers, and a failure as a warning."""
        lab.capture.readouterr()
        run = eyechart.run(
            lab.ones, "oracle:4", lengths=[3, 5], samples=4, out=lab.out, log_to="own"
        )
        assert lab.capture.readouterr() == ("", "")
        assert logged(log)[0]["metrics"] == dict(logged_run(run.judged).metrics)
        said: list[str] = []
        eyechart.run(
            *(lab.ones, "oracle:4"),
            lengths=[3, 5],
            samples=4,
            out=lab.out,
            log_to=["away"],
            warn=said.append,
        )
        assert any("is not logged to away: " in line for line in said)

    def test_a_file_of_settings(self, lab: Lab, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """`bench.toml`, and a variable."""
        monkeypatch.chdir(lab.folder)
        Path("bench.toml").write_text('log-to = ["own"]\n')
        assert lab.bench_run(*ASKED).code == 0
        assert len(logged(log)) == 1
        Path("bench.toml").unlink()
        monkeypatch.setenv("EYECHART_LOG_TO", "own")
        assert lab.bench_run(*ASKED).code == 0
        assert len(logged(log)) == 2

    def test_a_study(self, lab: Lab, log: Path) -> None:
        """In its file, or beside it on the command line; it is the same study."""
        study = lab.folder / "study.yaml"
        text = "name: mine\ntitle: A study\nsamples: 3\nlengths: [3]\nmodels: [oracle:4]\n"
        text += f"tasks: [{lab.ones}]\n"
        study.write_text(text)
        done = lab.bench("run", study, "--trust", "--out", lab.out, "--log-to", "own")
        assert done.code == 0, done
        assert len(logged(log)) == 1
        study.write_text(f"log_to: own\n{text}")
        done = lab.bench("run", study, "--trust", "--out", lab.out)
        assert done.code == 0, done
        assert len(logged(log)) == 2
        assert len({one["key"] for one in logged(log)}) == 1
        assert len([*(lab.out / "studies").iterdir()]) == 1


READS = {
    "mlflow": """
import json, mlflow
client = mlflow.MlflowClient()
found = client.search_runs([client.get_experiment_by_name("eyechart").experiment_id])
(run,) = found
history = client.get_metric_history(run.info.run_id, "by_length/none/accuracy")
at = {point.step: point.value for point in history}
print(json.dumps([run.data.params["model"], run.data.metrics["none/area"], sorted(at)]))
""",
    "trackio": """
import json, trackio
from trackio.sqlite_storage import SQLiteStorage
(run,) = trackio.Api().runs("eyechart")
rows = SQLiteStorage.get_logs("eyechart", run.name)
areas = [row["none/area"] for row in rows if "none/area" in row]
steps = {row["step"] for row in rows if "by_length/none/accuracy" in row}
print(json.dumps([run.config["model"], areas[-1], sorted(steps)]))
""",
    "wandb": """
import json
from pathlib import Path
(folder,) = {path.parent for path in Path("wandb").glob("offline-run-*/*.wandb")}
text = next(folder.glob("*.wandb")).read_bytes().decode(errors="replace")
assert "by_length/none/accuracy" in text and "none/area_ci_low" in text
import re
area = re.search(r'none/area\\W*?([0-9]+\\.[0-9]+)', text)
print(json.dumps(["oracle/4", float(area[1]), [3, 5]]))
""",
}
"""A tracker -> a program that prints the model, the area under the first condition, and the lengths
that the tracker has."""


@pytest.mark.parametrize("name", READS)
def test_the_real_package_has_the_run(lab: Lab, name: str) -> None:
    """In its own files, without a network; a second time under the same name."""
    if find_spec(name) is None:
        pytest.skip(f"needs the package {name}")
    away = "http://127.0.0.1:9"  # whatever is fetched all the same fails at once
    folder = lab.folder / "here"
    folder.mkdir()
    env = {key: value for key, value in os.environ.items() if not key.startswith(name.upper())}
    env |= {"HOME": str(folder), "HTTP_PROXY": away, "HTTPS_PROXY": away, "NO_PROXY": ""}
    env |= {"TRACKIO_DIR": str(folder / "trackio"), "PYTHONWARNINGS": "ignore"}
    if name == "mlflow":
        if find_spec("sqlalchemy") is None:
            pytest.skip("needs mlflow with its database, and not mlflow-skinny")
        env["MLFLOW_TRACKING_URI"] = f"sqlite:///{folder / 'mlflow.db'}"
    command = [sys.executable, "-m", "eyechart.harness", "run", "--task", str(lab.ones)]
    command += ["--model", "oracle:4", *ASKED, "--out", "results", "--log-to", name]
    for _ in range(1 if name == "wandb" else 2):
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "oracle/4 lab/ones is logged to " in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
    read = subprocess.run(
        [sys.executable, "-c", READS[name]],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert read.returncode == 0, read.stderr
    model, area, lengths = json.loads(read.stdout.splitlines()[-1])
    (of_run,) = (folder / "results" / "runs" / "oracle" / "4" / "lab").iterdir()
    table = eyechart.load_run(of_run).conditions
    assert (model, lengths) == ("oracle/4", [3, 5])
    assert area == pytest.approx(table["area"].iloc[0])
