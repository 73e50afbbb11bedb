"""The chapters say what is so: their commands run, and print what is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eyechart.harness.spec.columns import CELLS, DIAGNOSIS, EFFECTIVE_LENGTH, REACHES, RUN
from eyechart.providers.catalog.endpoints import endpoints
from tests.docs import notebook
from tests.docs.chapters import ROOT, chapters, check, read_blocks, renew
from tests.docs.generated import GENERATED
from tests.docs.scratch import ChapterError, Scratch, parse, wrapped

TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in chapters()}
README = TEXTS["README.md"]
WRITTEN = {*GENERATED, "settings.md"}
"""The chapters that code writes: they follow from it in a moment."""
_OF_ALL = "commands.md"
"""The chapter that has the verbs of the laboratory as well."""
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PROGRAM = re.compile(
    r"^ {4,}(?:\$ )?(?:bench|inspect|lm_eval|pip|python3?|uv|vllm) ", re.MULTILINE
)
_RENEWED = re.compile(r"^<!-- \w+ -->\n.*?^<!-- end -->", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if Path(name).name in WRITTEN else pytest.mark.published)
        for name in TEXTS
    ],
)
def test_what_is_shown_is_what_is_printed(name: str, tmp_path: Path) -> None:
    """Else `python -m tests.docs --write` renews it."""
    if Path(name).name == _OF_ALL:
        pytest.importorskip("eyechart_lab")
    assert renew(ROOT / name, tmp_path) == TEXTS[name]


def test_what_the_first_chapter_begins_with_is_printed(tmp_path: Path) -> None:
    """So that the commands of a chapter are run in every test."""
    begins = TEXTS["docs/index.md"].partition("\n## Look at the replies\n")[0]
    page = tmp_path / "begins.md"
    page.write_text(begins, encoding="utf-8")
    assert renew(page, tmp_path) == begins
    assert [block.language for block in read_blocks(begins)] == ["bash", "bash", "text"]


@pytest.mark.published
def test_the_notebook_shows_what_its_cells_give(tmp_path: Path) -> None:
    """Executed without Jupyter; pictures are not compared."""
    text = notebook.NOTEBOOK.read_text(encoding="utf-8")
    renewed = notebook.renew(notebook.NOTEBOOK, tmp_path)
    assert notebook.without_pictures(renewed) == notebook.without_pictures(text)
    assert text.count('"image/png"') == renewed.count('"image/png"') == 1


@pytest.mark.parametrize("name", TEXTS)
def test_every_command_is_in_a_block_that_is_read(name: str) -> None:
    """No fence is indented or open, and no indented text is a command, but for generated tables."""
    fences = re.findall(r"^[ \t]*(```|~~~)", TEXTS[name], re.MULTILINE)
    assert len(fences) == 2 * len(list(read_blocks(TEXTS[name])))
    assert _PROGRAM.findall(_RENEWED.sub("", TEXTS[name])) == []


def test_parts_of_files_are_in_four_chapters() -> None:
    """`tests/test_docs_tasks.py` and `tests/test_docs_task_file.py` check them; nothing checks
    those of another chapter.
    """
    parted = [name for name, text in TEXTS.items() if "<!-- part of: " in text]
    assert parted == ["docs/answers.md", "docs/around.md", "docs/task-file.md", "docs/tasks.md"]


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_somewhere(name: str) -> None:
    """To a file that there is, and to a heading of it."""
    for link in _LINK.findall(TEXTS[name]):
        target, _, heading = link.partition("#")
        if link.startswith("https://"):
            continue
        path = (ROOT / name).parent / target if target else ROOT / name
        assert path.exists(), link
        if heading:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in {_anchor(text) for text in headings}, link


def _anchor(heading: str) -> str:
    """The name that Markdown pages give to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_readme_is_short_and_names_every_chapter() -> None:
    """At most 160 lines, with a link to each file in docs/."""
    assert len(README.splitlines()) <= 160
    named = set(_LINK.findall(README))
    files = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*.ipynb")]
    assert {f"docs/{path.name}" for path in files} <= named


def test_a_chapter_is_short_or_a_reference() -> None:
    """At most 1,500 words, or the first paragraph says that one looks something up in it."""
    long = {
        name
        for name, text in TEXTS.items()
        if name.startswith("docs/") and len(text.split()) > 1500
    }
    read_through = {name for name in long if "reference" not in TEXTS[name].split("\n\n")[1]}
    assert read_through == set()


def test_the_chapter_about_files_has_every_column() -> None:
    """Of all tables of a run."""
    text = TEXTS["docs/files.md"]
    named = set(re.findall(r"`(\w+)`", text))
    assert {*RUN, *CELLS, REACHES, *DIAGNOSIS, *EFFECTIVE_LENGTH} <= named


def test_the_chapter_about_running_names_every_vendor() -> None:
    assert [name for name in endpoints() if f"`{name}/" not in TEXTS["docs/running.md"]] == []


def test_ci_runs_the_commands_that_install() -> None:
    """The chapters' tests do not make an environment; `.ci/run` does, on a clean checkout."""
    (block,) = [block for block in read_blocks(README) if "pip install" in block.text]
    stages = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    main_job, tests = block.commands
    assert tests in stages
    assert main_job.partition("bin/bench ")[2] in stages


class TestBlocks:
    """What a chapter cannot have."""

    @pytest.mark.parametrize(
        ("text", "word"),
        [
            ("```text\nx\n```\n", "needs a comment"),
            ("```yaml\nx: 1\n```\n", "needs a comment"),
            ("<!-- printed -->\n```bash\nbench tasks\n```\n", "cannot be"),
            ("<!-- notrun: needs a key -->\n```bash\nbench tasks\n```\n", "unknown"),
            ("<!-- not run: slow -->\n```bash\nbench tasks\n```\n", "needs something"),
        ],
    )
    def test_a_block_says_what_it_is(self, text: str, word: str) -> None:
        """An output that nothing prints, a file without a name, a reason that is none."""
        (block,) = read_blocks(text)
        with pytest.raises(ChapterError, match=word):
            check(block)

    @pytest.mark.parametrize(
        "command",
        ["bench run --taks x", "bench rum", "bench tasks chek x", "bench run --task x --rpm many"],
    )
    def test_what_is_not_run_is_parsed(self, command: str) -> None:
        """A wrong option, verb or value."""
        parse("bench run --task x --model y --rpm 5")
        with pytest.raises(ChapterError):
            parse(command)

    @pytest.mark.parametrize(
        "command", ["bench tasks check none.yaml", "curl x", "bench tasks | head -99", "cat no*"]
    )
    def test_a_command_that_fails_is_an_error(self, command: str, tmp_path: Path) -> None:
        """Also one that is not known, or that leaves out nothing."""
        scratch = Scratch(tmp_path)
        with pytest.raises(ChapterError):
            scratch.command(command)
        with pytest.raises(ChapterError, match="ZeroDivisionError"):
            scratch.python("1 / 0", 1)

    def test_an_output_that_nothing_prints_is_an_error(self, tmp_path: Path) -> None:
        """Also in a chapter that is not in the repository's list."""
        page = tmp_path / "page.md"
        page.write_text("<!-- printed -->\n```text\nx\n```\n")
        with pytest.raises(ChapterError, match=r"page\.md, line 2: nothing is printed"):
            renew(page, tmp_path)

    def test_output_is_made_equal(self, tmp_path: Path) -> None:
        """Dates, the name of the folder, blanks at the end, long sentences."""
        scratch = Scratch(tmp_path)
        scratch.command(f"echo '{tmp_path}/x at 2031-05-06T07:08:09Z  '")
        scratch.command(f"echo '{'word ' * 30}'")
        first, *more = wrapped(scratch.taken()).splitlines()
        assert first == "x at 2026-01-01T00:00:00Z"
        assert [len(line) for line in more] == [99, 49]
