"""Lines of batch files: names that say which sample it is, limits that hold, replies."""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyechart.harness.errors import JournalError
from eyechart.harness.run.batch.files import (
    FileLimits,
    ReplyLine,
    SplitFile,
    condition_tag,
    custom_id,
    read_custom_id,
    reply_lines,
    request_line,
    run_tag,
)
from eyechart.harness.spec import Condition, Line, Sample, Settings
from eyechart.providers.base import ModelSettings
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_batch_form

if TYPE_CHECKING:
    from tests.conftest import Lab

NARROWEST = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every vendor takes as a custom_id."""


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file of this process grows beyond 4,096 bytes, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.text(max_size=40), max_size=4),
    st.integers(1, 1_000_000),
    st.integers(0, 10**18 - 1),
    st.text(max_size=20),
)
def test_a_custom_id_says_which_sample_it_is(
    values: dict[str, str], length: int, index: int, prompt: str
) -> None:
    """And what its prompt was, in characters that every vendor takes."""
    tag = run_tag(Path("out"), Path("out/runs/openai/gpt-4o/counting/ones@1-abcdef01"))
    condition = Condition(values)
    sample = Sample("id", condition, Line.exact(length), length, index, prompt, 1)
    name = custom_id(tag, sample)
    assert NARROWEST.fullmatch(name)
    place = read_custom_id(name)
    assert place is not None
    assert (place.run, place.length, place.index) == (tag, length, index)
    assert place.condition == condition_tag(condition)
    assert sample.prompt_hash.startswith(place.prompt)


@pytest.mark.parametrize(
    "given", [None, 7, "", "request-1", "b6d17d38f558-c7b5926e-5-0-c1f908f", "x" * 300, ["a"]]
)
def test_other_names_are_not_ours(given: object) -> None:
    """Whatever stands there."""
    assert read_custom_id(given) is None


def test_runs_of_different_folders_differ() -> None:
    """Also where only the group of the task does; where the results lie says nothing."""
    out = Path("a")
    tags = {
        run_tag(out, out / "runs" / folder)
        for folder in ("tiny/one/ones@1-00", "tiny/two/ones@1-00", "tiny2/one/ones@1-00")
    }
    assert len(tags) == 3
    assert run_tag(Path("b"), Path("b/runs/tiny/one/ones@1-00")) in tags


def test_a_line_has_the_form_of_openai(lab: Lab) -> None:
    """What the vendor's guide shows, and nothing else."""
    sample = next(iter(lab.wanted().plan))
    name = parse_model("vllm/m")
    form = open_batch_form(name, ModelSettings("m"))
    line = request_line("0123456789ab", sample, 40, form, Settings())
    assert line.endswith(b"\n")
    read = orjson.loads(line)
    assert list(read) == ["custom_id", "method", "url", "body"]
    assert (read["method"], read["url"]) == ("POST", "/v1/chat/completions")
    assert read["body"]["model"] == "m"
    assert read["body"]["max_tokens"] == 40


class TestSplit:
    """Files within the limits."""

    def parts(self, path: Path, lines: Sequence[bytes], limits: FileLimits) -> list[Path]:
        with SplitFile(path, limits) as files:
            for line in lines:
                files.write(line)
            return files.keep()

    def test_one_file_keeps_its_name(self, tmp_path: Path) -> None:
        """Numbers only where there are several."""
        path = tmp_path / "requests.jsonl"
        assert self.parts(path, [b"a\n"] * 4, FileLimits(requests=4)) == [path]
        assert path.read_bytes() == b"a\n" * 4
        assert list(tmp_path.iterdir()) == [path]

    @given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(1, 7))
    def test_no_file_is_beyond_the_limits(
        self, tmp_path_factory: pytest.TempPathFactory, sizes: list[int], requests: int
    ) -> None:
        """Nor could two neighbours be one; all lines are there in their order."""
        path = tmp_path_factory.mktemp("split") / "requests.jsonl"
        lines = [b"x" * size + b"\n" for size in sizes]
        limits = FileLimits(requests=requests, size=50)
        paths = self.parts(path, lines, limits)
        found = [one.read_bytes() for one in paths]
        assert b"".join(found) == b"".join(lines)
        assert sorted(path.parent.iterdir()) == sorted(paths)
        for content in found:
            assert len(content) <= 50
            assert content.count(b"\n") <= requests
        for before, after in pairwise(found):
            first = after.partition(b"\n")[0] + b"\n"
            full = before.count(b"\n") == requests
            assert full or len(before) + len(first) > 50
        if len(paths) > 1:
            names = [f"requests-{number}.jsonl" for number in range(1, len(paths) + 1)]
            assert [one.name for one in paths] == names

    def test_the_limits_are_the_vendors(self) -> None:
        """50,000 requests and 200 MB."""
        assert FileLimits() == FileLimits(50_000, 200_000_000)

    def test_half_a_file_does_not_stay(self, tmp_path: Path) -> None:
        """Whatever is raised while it is written."""

        def fail() -> None:
            with SplitFile(tmp_path / "requests.jsonl", FileLimits()) as files:
                files.write(b"a\n")
                raise KeyError

        with pytest.raises(KeyError):
            fail()
        assert list(tmp_path.iterdir()) == []

    def test_a_place_that_cannot_be_written(self, tmp_path: Path) -> None:
        """One line for the user."""
        with (
            SplitFile(tmp_path / "no" / "requests.jsonl", FileLimits()) as files,
            pytest.raises(JournalError, match="cannot write"),
        ):
            files.write(b"a\n")

    @pytest.mark.usefixtures("full_disk")
    def test_a_full_disk_is_said_in_one_line(self, tmp_path: Path) -> None:
        """Half a file does not stay there either."""

        def fill() -> None:
            with SplitFile(tmp_path / "requests.jsonl", FileLimits()) as files:
                for _ in range(1000):
                    files.write(b"x" * 999 + b"\n")

        with pytest.raises(JournalError, match=r"cannot write .*: File too large"):
            fill()
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.usefixtures("full_disk")
    def test_a_disk_that_is_full_at_the_end(self, tmp_path: Path) -> None:
        """A file is only kept once all of it is on the disk."""
        with SplitFile(tmp_path / "requests.jsonl", FileLimits()) as files:
            files.write(b"x" * 5000 + b"\n")
            with pytest.raises(JournalError, match=r"requests\.jsonl: File too large"):
                files.keep()
        assert list(tmp_path.iterdir()) == []


class TestReplies:
    """Files of replies, whoever wrote them."""

    def lines(self, path: Path, content: bytes) -> list[ReplyLine]:
        file = path / "replies.jsonl"
        file.write_bytes(content)
        return list(reply_lines(file))

    def test_what_is_no_object_is_told_from_what_is_torn(self, tmp_path: Path) -> None:
        """A last line without an end may have been cut off; empty ones say nothing."""
        read = self.lines(tmp_path, b'{"a": 1}\nno\n\n[1]\r\n{"b": 2}\r\n{"c": ')
        assert [(one.number, one.read, one.torn) for one in read] == [
            (1, {"a": 1}, False),
            (2, None, False),
            (4, None, False),
            (5, {"b": 2}, False),
            (6, None, True),
        ]

    def test_a_last_line_may_lack_its_end(self, tmp_path: Path) -> None:
        """If it is whole, it counts; so does the first line of a file from Windows."""
        read = self.lines(tmp_path, b'\xef\xbb\xbf{"a": 1}\n{"b": 2}')
        assert [one.read for one in read] == [{"a": 1}, {"b": 2}]

    def test_half_a_character_does_not_spoil_a_line(self, tmp_path: Path) -> None:
        """Models that are cut off leave such."""
        (line,) = self.lines(tmp_path, b'{"a": "\\ud83d"}\n')
        assert line.read == {"a": "\ud83d"}

    def test_a_file_that_is_gone(self, tmp_path: Path) -> None:
        """One line for the user."""
        with pytest.raises(JournalError, match="cannot read"):
            list(reply_lines(tmp_path / "no.jsonl"))
