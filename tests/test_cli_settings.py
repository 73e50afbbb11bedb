"""Defaults from `bench.toml`, `pyproject.toml` and the environment."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.main import get_command

from eyechart.harness.cli.app import app
from eyechart.harness.cli.parsing.defaults import DEFAULTS, ONCE, read_defaults, variable
from eyechart.harness.errors import UsageError
from eyechart.harness.journal.manifest import MANIFEST, read_manifest
from eyechart.harness.settings.judging import JUDGING
from eyechart.harness.settings.run_settings import SETTINGS

if TYPE_CHECKING:
    from tests.conftest import Done, Lab

ROOT = Path(__file__).parents[1]
DOCS = (ROOT / "docs" / "settings.md").read_text()


@pytest.fixture
def home(lab: Lab) -> Lab:
    """A laboratory whose folder is the current one, without variables of the user's."""
    for name in list(os.environ):
        if name.startswith("EYECHART_"):
            lab.monkeypatch.delenv(name)
    lab.monkeypatch.chdir(lab.folder)
    return lab


def write(lab: Lab, *lines: str, name: str = "bench.toml") -> None:
    (lab.folder / name).write_text("\n".join((*lines, "")))


def lengths_and_models(lab: Lab) -> tuple[set[int], set[str]]:
    """Of all runs there are."""
    manifests = [read_manifest(path.parent) for path in lab.folder.rglob(MANIFEST)]
    lengths = {cell.line.length for manifest in manifests for cell in manifest.cells}
    return lengths, {manifest.model for manifest in manifests}


def asked(lab: Lab, *arguments: str) -> Done:
    done = lab.bench("run", *arguments)
    assert done.code == 0, done
    return done


@pytest.mark.parametrize(
    ("name", "header"), [("bench.toml", ""), ("pyproject.toml", "[tool.eyechart]")]
)
def test_a_file_has_defaults(home: Lab, name: str, header: str) -> None:
    """A line says which, and the manifest has them in its command."""
    lines = ('task = "lab/plain.yaml"', 'model = "oracle:9"', "lengths = [2, 3]", "samples = 1")
    write(home, header, *lines, 'out = "there"', name=name)
    done = asked(home, "--trust")
    given = "--task lab/plain.yaml --model oracle:9 --lengths 2,3 --samples 1 --out there"
    assert done.err == f"bench: {name}: {given}\n"
    assert lengths_and_models(home) == ({2, 3}, {"oracle/9"})
    (folder,) = (path.parent for path in (home.folder / "there").rglob(MANIFEST))
    assert read_manifest(folder).commands == [f"bench run --trust {given}"]
    assert home.bench("runs").out.count("oracle/9") == 2  # its name and its folder
    again = home.bench("run", *given.split())
    assert (again.code, again.err) == (0, "")  # nothing is from the file


def test_the_command_line_comes_first_then_the_environment(home: Lab) -> None:
    """Before the file, which comes before an option's own default."""
    write(home, 'model = ["oracle:9"]', 'lengths = "2"', "samples = 1", 'axis = ["separator=all"]')
    home.monkeypatch.setenv("EYECHART_LENGTHS", "4,5")
    done = asked(home, "--task", "lab/ones.yaml", "--axis", "separator=none")
    assert done.err == "bench: bench.toml: --model oracle:9 --samples 1\n"
    assert lengths_and_models(home) == ({4, 5}, {"oracle/9"})
    (run,) = (path.parent for path in home.folder.rglob(MANIFEST))
    manifest = read_manifest(run)
    assert manifest.commands[0].endswith(" --model oracle:9 --lengths 4,5 --samples 1")
    assert {cell.condition.label for cell in manifest.cells} == {"separator=none"}
    asked(
        home, "--task", "lab/ones.yaml", "-m", "oracle:8", "--lengths", "3", "--axis=separator=none"
    )
    assert lengths_and_models(home) == ({3, 4, 5}, {"oracle/8", "oracle/9"})


def test_variables_are_for_every_option(home: Lab) -> None:
    """Lists have blanks between; switches are on or off."""
    write(home, "adaptive = true")
    for name, value in {
        "TASK": "lab/ones.yaml",
        "MODEL": "oracle:9,oracle:8",
        "LENGTHS": "2",
        "SAMPLES": "1",
        "ADAPTIVE": "0",
        "AXIS": "separator=none separator=comma",
    }.items():
        home.monkeypatch.setenv(f"EYECHART_{name}", value)
    assert asked(home).err == ""
    assert lengths_and_models(home) == ({2}, {"oracle/8", "oracle/9"})


def test_an_axis_may_be_a_table(home: Lab) -> None:
    """Each key is an axis."""
    write(home, "[axis]", 'separator = ["none", "space"]')
    defaults = read_defaults(home.folder)
    assert defaults["axis"].value == [{"separator": ["none", "space"]}]
    assert defaults["axis"].place.endswith("bench.toml:1")


def test_a_default_axis_is_for_tasks_that_have_it(home: Lab) -> None:
    """The others are named, once; the command line stays strict."""
    write(home, "samples = 1", 'axis = ["separator=space"]')
    both = ("-t", "lab/ones.yaml,lab/plain.yaml", "-m", "oracle:9,oracle:8", "--lengths", "3")
    done = asked(home, *both)
    said = [line for line in done.err.splitlines() if "left out" in line]
    assert said == [
        "bench: bench.toml:2: axis 'separator' is left out for lab/plain: no such axis there"
    ]
    conditions = {
        cell.condition.label
        for path in home.folder.rglob(MANIFEST)
        for cell in read_manifest(path.parent).cells
    }
    assert conditions == {"separator=space", "-"}
    strict = home.bench("run", "-t", "lab/plain.yaml", "-m", "oracle:9", "--axis", "separator=none")
    assert strict.code == 2
    exported = home.bench("export", "lm-eval", "-t", "counting/sum", "-o", "tasks")
    assert exported.code == 0
    assert "axis 'separator' is left out for counting/sum" in exported.err


def test_a_misspelt_axis_says_which_axes_there_are(home: Lab) -> None:
    """Where no task of the command has it."""
    write(home, "samples = 1", 'axis = {separatr = "comma", colour = "red"}')
    done = asked(home, "-t", "lab/ones.yaml", "-m", "oracle:9", "--lengths", "3")
    said = "bench: bench.toml:2: axis {} is left out for lab/ones: no such axis there; {}"
    assert [line for line in done.err.splitlines() if "left out" in line] == [
        said.format("'separatr'", "did you mean 'separator'?"),
        said.format("'colour'", "known: examples, separator"),
    ]


def test_verbs_that_only_read_go_on_where_a_mistake_does_not_concern_them(home: Lab) -> None:
    """One line says it; a mistake in `out` concerns them."""
    home.bench("run", "-t", "lab/plain.yaml", "-m", "oracle:9", "--out", "there")
    write(home, 'out = "there"', 'modle = "tiny"', "samples = true")
    done = home.bench("runs")
    assert done.code == 0
    assert "oracle/9" in done.out
    assert done.err == (
        "bench: bench.toml:2: no option 'modle'; did you mean 'model'? (and 1 more)\n"
        "bench: bench.toml: --out there\n"
    )
    assert home.bench("run", "-t", "lab/plain.yaml").code == 2
    write(home, 'otu = "there"', "samples = true")
    home.bench("runs").one_line(2, "bench.toml:1: no option 'otu'; did you mean 'out'?")
    write(home, "out = 3.5")
    home.bench("runs").one_line(2, "bench.toml:1: out must be a path, not 3.5")


def test_bench_toml_alone_is_read_where_both_are(home: Lab) -> None:
    """And a project without our table has no defaults."""
    write(home, "[tool.eyechart]", "samples = 1", name="pyproject.toml")
    assert set(read_defaults(home.folder)) == {"samples"}
    write(home, "max_tokens = 5")
    assert {name: one.value for name, one in read_defaults(home.folder).items()} == {
        "max-tokens": 5
    }
    (home.folder / "bench.toml").unlink()
    for text in ("[tool.ruff]\nsamples = 1", "[tool.eyechart-other]\nx = 1", "# eyechart"):
        write(home, text, name="pyproject.toml")
        assert read_defaults(home.folder) == {}


WRONG = [
    ("modle = 1", "no option 'modle'; did you mean 'model'?"),
    ("zzz = 1", "no option 'zzz'; 'bench run --help' lists the options"),
    ("[run]", "no option 'run'"),
    ("fresh = true", "'fresh' is for one command"),
    ("dry_run = true", "'dry-run' is for one command"),
    ("draws = 0", "draws must be a whole number from 1 to 1,000, not 0"),
    ("json = true", "'json' is for one command"),
    ("samples = 'x'", "samples must be a whole number from 1 to 1,000,000, not 'x'"),
    ("samples = 1.5", "samples must be a whole number from 1 to 1,000,000, not 1.5"),
    ("samples = true", "samples must be a whole number from 1 to 1,000,000, not True"),
    ("samples = [1]", "samples must be a whole number from 1 to 1,000,000, not [1]"),
    ("budget = 'x'", "budget must be a number above 0, not 'x'"),
    ("adaptive = 1", "adaptive must be true or false, not 1"),
    ("lengths = {a = 1}", "lengths must be whole numbers from 1 to 1,000,000, not {'a': 1}"),
    ("model = [true]", "model must be a text, not True"),
    ("name = 8", "name must be a text, not 8"),
]


@pytest.mark.parametrize(("line", "words"), WRONG, ids=str)
def test_what_a_file_cannot_have_is_said_with_its_place(home: Lab, line: str, words: str) -> None:
    """A verb that asks no model goes on; help is shown all the same."""
    write(home, "# a comment", line)
    run = home.bench("run", "-t", "lab/plain.yaml", "-m", "oracle:5")
    run.one_line(2, "bench.toml:2: ", words)
    runs = home.bench("runs")
    assert (runs.code, runs.err.splitlines()[0]) == (0, run.err.strip())
    assert home.bench("run", "--help").code == 0
    assert home.bench("help", "run").code == 0
    assert not home.out.exists()


@pytest.mark.parametrize(
    "key", ["api-key", "api_key", "OPENAI_API_KEY", "openai-key", "token", "secret", "password"]
)
def test_keys_are_not_read_and_not_said(home: Lab, key: str) -> None:
    """The line says where they belong."""
    write(home, f'{key} = "sk-planted-0123456789"')
    done = home.bench("run", "-t", "lab/plain.yaml", "-m", "oracle:5")
    assert "planted" not in done.one_line(2, "bench.toml:1: ", "'bench models' names")


def test_all_mistakes_of_a_file_are_said(home: Lab) -> None:
    """A line for each."""
    write(
        home, "[project]", "x = 1", "[tool.eyechart]", "modle = 1", "x = 2", name="pyproject.toml"
    )
    done = home.bench("run", "-t", "lab/plain.yaml", "-m", "oracle:5")
    assert done.code == 2
    assert [line.partition(": ")[0] for line in done.err.splitlines()[1:]] == [
        "pyproject.toml:4",
        "pyproject.toml:5",
    ]


def test_a_file_that_is_no_toml(home: Lab) -> None:
    """Is said with line and column."""
    write(home, "samples = 1", "samples == 2")
    home.bench("runs").one_line(2, "bench.toml:2:", "not TOML")
    write(home, "samples = 1", "exact = True")
    home.bench("runs").one_line(2, "bench.toml:2:", "write true, not True")


def test_a_file_that_is_nested_too_deep(home: Lab) -> None:
    """Deeper than its reader can follow."""
    write(home, "samples = " + "[" * 100_000)
    home.bench("runs").one_line(2, "bench.toml: ", "nested too deep")
    (home.folder / "bench.toml").write_bytes("samples = 1".encode("utf-16"))
    home.bench("runs").one_line(2, "bench.toml is not UTF-8; write it in UTF-8")


def test_a_value_out_of_range_is_said_with_its_place(home: Lab) -> None:
    """Of a file, or of a variable."""
    command = ("run", "-t", "lab/plain.yaml", "-m", "oracle:5")
    write(home, "", "samples = 0")
    home.bench(*command).one_line(2, "bench.toml:2: samples must be")
    (home.folder / "bench.toml").unlink()
    home.monkeypatch.setenv("EYECHART_SAMPLES", "none")
    home.bench(*command).one_line(2, "EYECHART_SAMPLES: samples must be")
    home.monkeypatch.setenv("EYECHART_SAMPLES", "1")
    home.monkeypatch.setenv("EYECHART_ADAPTIVE", "maybe")
    home.bench(*command).one_line(2, "EYECHART_ADAPTIVE must be 1 or 0, not 'maybe'")


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("--samples", "-1", "a whole number from 1 to 1,000,000, not -1"),
        ("--samples", "1.5", "a whole number from 1 to 1,000,000, not 1.5"),
        ("--seed", "x", "a whole number from 0 to 9,223,372,036,854,775,807, not 'x'"),
        ("--max-connections", "20000", "a whole number from 1 to 10,000, not 20000"),
        ("--temperature", "nan", "'none' or a number from 0 on, not nan"),
        ("--temperature", "-1", "'none' or a number from 0 on, not -1"),
        ("--precision", "inf", "a number from 0.4 to 1 octaves, not inf"),
        ("--budget", "x", "a number above 0, not 'x'"),
    ],
)
def test_a_number_that_is_none_is_said_in_our_words(
    home: Lab, option: str, value: str, wanted: str
) -> None:
    """With its range, and what was given."""
    command = ("run", "-t", "lab/plain.yaml", "-m", "oracle:5")
    home.bench(*command, option, value).one_line(2, f"{option} must be {wanted}")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("model = 'oracle:9,opnai/x'", "unknown provider 'opnai'"),
        ("model = 'google/x'", "did you mean 'gemini/x' or 'openrouter/google/x'?"),
        ("task = 'countng'", "unknown task 'countng'"),
        ("axis = {separator = 'coma'}", "no value 'coma' on axis 'separator'"),
        ("precision = 0.5", "precision needs --adaptive; add it"),
    ],
    ids=str,
)
def test_a_value_that_cannot_be_is_said_with_its_place(home: Lab, line: str, words: str) -> None:
    """Also where it is found to be wrong after the options were read."""
    write(home, "", line)
    own = {"task": ("-t", "lab/ones.yaml"), "model": ("-m", "oracle:5")}
    given = (option for key, option in own.items() if not line.startswith(key))
    done = home.bench("run", *(word for option in given for word in option))
    assert (done.code, done.out) == (2, "")
    (_, said) = done.err.splitlines()  # the first line has what came from the file
    assert said.startswith("bench: bench.toml:2: ")
    assert words in said


def test_an_error_of_the_command_line_has_no_place(home: Lab) -> None:
    """Where the file has other options, and where a variable is replaced."""
    write(home, 'task = "lab/ones.yaml"', 'model = "oracle:5"')
    home.monkeypatch.setenv("EYECHART_LENGTHS", "x")
    asked = ("run", "--trust")
    assert "bench: --lengths must be" in home.bench(*asked, "--lengths", "y").err
    assert "bench: EYECHART_LENGTHS: lengths must be" in home.bench(*asked).err
    assert "bench: no axis 'zzz' in" in home.bench(*asked, "--lengths", "5", "--axis", "zzz=1").err


def test_a_misspelt_variable_is_said(home: Lab) -> None:
    """With the one that was meant, by every verb; the command goes on."""
    home.monkeypatch.setenv("EYECHART_MODLE", "x")
    home.monkeypatch.setenv("EYECHART_SEED", "1")
    done = home.bench("runs")
    assert done.code == 0
    (said, _) = done.err.splitlines()  # no run is there
    assert said.startswith("bench: the variable EYECHART_MODLE is not read")
    assert said.endswith("did you mean EYECHART_MODEL?")
    home.monkeypatch.delenv("EYECHART_MODLE")
    home.monkeypatch.setenv("EYECHART_JSON", "1")
    assert "EYECHART_JSON is not read: no option has it; docs/" in home.bench("runs").err


def test_a_folder_without_a_name_is_refused(home: Lab) -> None:
    """By every verb that has `--out`; a file is named with its line."""
    for command in (
        ("runs",),
        ("leaderboard",),
        ("import", "replies.jsonl"),
        ("run", "-t", "lab/plain.yaml", "-m", "oracle:5"),
        ("export", "batch", "-t", "lab/plain.yaml", "-m", "gpt-4o", "-o", "x.jsonl"),
    ):
        home.bench(*command, "--out", "").one_line(2, "--out", "is empty; name a folder")
    write(home, 'out = ""')
    home.bench("runs").one_line(2, "bench.toml:1: out is empty")
    assert not (home.folder / "runs").exists()


def test_the_page_of_settings_lists_every_option_and_variable() -> None:
    """The options, and the variables that name files."""
    rows = re.findall(r"^\| (?:`([a-z-]+)`)? *\| `(EYECHART_\w+)` \|", DOCS, re.MULTILINE)
    expected = [(option, variable(option)) for option in DEFAULTS]
    assert rows == [*expected, ("", "EYECHART_ENDPOINTS"), ("", "EYECHART_MODELS")]
    for option in (*ONCE, *(one.option for one in SETTINGS.values() if one.doubt)):
        assert f"`{option}`" in DOCS
    sources = (path for name in ("harness", "providers") for path in (ROOT / name).rglob("*.py"))
    named = {
        found
        for path in sources
        for found in re.findall(r'"(EYECHART_[A-Z]+)"', path.read_text(encoding="utf-8"))
    }
    assert named <= {variable for _, variable in rows}


def test_every_option_of_run_is_a_setting_or_meant_for_one_command() -> None:
    """None is forgotten."""
    run = get_command(app).get_command(None, "run")  # type: ignore[attr-defined]
    options = {name[2:] for one in run.params for name in one.opts if name.startswith("--")}
    assert options - {"help"} <= set(DEFAULTS) | set(ONCE)
    judging = {one.option for one in JUDGING.values()}
    assert set(DEFAULTS) - judging <= options


def test_the_example_of_the_page_runs(home: Lab) -> None:
    """As a file of its own and as a part of pyproject.toml."""
    (example,) = re.findall(r"```toml\n(.*?)```", DOCS, re.DOTALL)
    assert set(tomllib.loads(example)) <= set(DEFAULTS)
    write(home, example)
    asked(home, "--task", "counting/ones", "--samples", "1", "--lengths", "5")
    assert lengths_and_models(home) == ({5}, {"tiny", "oracle/50"})
    assert (home.folder / "my-results" / "runs").is_dir()
    shown = re.findall(r"^    bench: (bench.toml:2: .*)$", DOCS, re.MULTILINE)
    write(home, "", "modle = 1")
    with pytest.raises(UsageError, match=re.escape(shown[0])):
        read_defaults(Path())
