"""The files around the code: forms of issues, the workflow, and how to cite."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml

from tests.docs.chapters import ROOT

GITHUB = ROOT / ".github"
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))
KINDS = {"checkboxes", "dropdown", "input", "markdown", "textarea"}


def read(path: Any) -> Any:
    """A YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", [p for p in FORMS if p.stem != "config"], ids=lambda p: p.stem)
def test_a_form_is_one_that_github_takes(path: Any) -> None:
    """Name, description, and fields of known kinds with labels and different ids."""
    form = read(path)
    assert {"name", "description", "labels", "body"} == set(form)
    ids = [part["id"] for part in form["body"]]
    assert len(ids) == len(set(ids))
    for part in form["body"]:
        assert set(part) <= {"type", "id", "attributes", "validations"}
        assert part["type"] in KINDS
        assert part["attributes"]["label"]
    assert any(part.get("validations", {}).get("required") for part in form["body"])


def test_there_is_a_form_for_bugs_tasks_and_results() -> None:
    """And one for pull requests."""
    assert {"bug", "new_task", "results", "config"} == {path.stem for path in FORMS}
    assert "tests.docs --write" in (GITHUB / "pull_request_template.md").read_text(encoding="utf-8")


def test_the_workflow_calls_what_ci_is() -> None:
    """`.ci/run`, with the Python versions that its stages want, and may only read."""
    workflow = read(GITHUB / "workflows" / "ci.yml")
    (job,) = workflow["jobs"].values()
    assert {"run": ".ci/run"} in job["steps"]
    (python,) = [
        step for step in job["steps"] if step.get("uses", "").startswith("actions/setup-python@")
    ]
    wanted = python["with"]["python-version"].split()
    lowest = re.search(r"!= (3\.\d+) \]\]", (ROOT / ".ci" / "vllm").read_text(encoding="utf-8"))
    assert lowest is not None
    assert wanted[-1] == lowest[1]
    assert "3.12" in wanted
    assert workflow["permissions"] == {"contents": "read"}
    assert set(workflow[True]) == {"push", "pull_request"}  # `on` is a truth value in YAML 1.1


def test_the_citation_is_of_this_version() -> None:
    """The same name, version and licence as the package's."""
    citation = read(ROOT / "CITATION.cff")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])
    assert [one["name"] for one in citation["authors"]] == [
        one["name"] for one in project["authors"]
    ]
    assert citation["title"].lower().startswith(project["name"])
