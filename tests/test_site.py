"""The site: every chapter is in its navigation, links hold, and broken ones are found."""

from __future__ import annotations

from pathlib import Path

from tests.docs import site
from tests.docs.chapters import ROOT


def test_every_chapter_is_in_the_navigation_once() -> None:
    """And each has a title; `llms.txt` names all of them."""
    named = [chapter.path for chapter in site.navigation()]
    chapters = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert sorted(named) == sorted(set(named))
    assert chapters <= set(named)
    assert all(chapter.title for chapter in site.navigation())
    text = site.llms_txt()
    assert [name for name in named if f"]({name})" not in text] == []
    assert text.startswith("# Eyechart\n\n> ")


def test_what_pages_link_to_comes_along(tmp_path: Path) -> None:
    """Pages, pictures and code; a folder becomes a page that lists its files."""
    site.stage(tmp_path / "pages")
    there = {path.relative_to(tmp_path / "pages").as_posix() for path in tmp_path.rglob("*")}
    assert {chapter.path for chapter in site.navigation()} <= there
    assert {"results/recorded/where_models_stop.svg", "providers/base.py"} <= there
    listed = (tmp_path / "pages" / "examples" / "index.md").read_text(encoding="utf-8")
    assert "[eyechart-command/pyproject.toml](eyechart-command/pyproject.toml)" in listed


def test_broken_links_are_found(tmp_path: Path) -> None:
    """A page, an anchor and a picture that are not there; none of other sites."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "index.html").write_text(
        '<h2 id="here">x</h2><a href="#here">1</a><a href="a/b/#there">2</a>'
        '<a href="a/b/#gone">3</a><img src="none.png"><a href="https://else.where/x">4</a>'
    )
    (tmp_path / "a" / "b" / "index.html").write_text(
        '<h2 id="there">x</h2><a href="../../#here">1</a><a href="../c/">2</a><a href="/">3</a>'
    )
    assert site.broken_links(tmp_path) == [
        "a/b/index.html: ../c/",
        "index.html: a/b/#gone",
        "index.html: none.png",
    ]


def test_markdown_lies_beside_the_pages(tmp_path: Path) -> None:
    """With `llms.txt` at the root, whose links then lead to files."""
    pages, built = tmp_path / "pages", tmp_path / "site"
    site.stage(pages)
    built.mkdir()
    assert site.finish(pages, built) == []
    for chapter in site.navigation():
        assert (built / chapter.path).read_text(encoding="utf-8") == chapter.text
    assert (built / "llms.txt").read_text(encoding="utf-8") == site.llms_txt()
