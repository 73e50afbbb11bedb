"""The site of the chapters: `stage` copies the pages for the generator, `finish` ends its work.

    python -m tests.docs.site stage
    zensical build --strict
    python -m tests.docs.site finish

Pages keep the folders that they have in the repository, so their links hold. `finish` puts each
page as Markdown beside its HTML, writes `llms.txt`, and fails where a link or an anchor leads
nowhere.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

from tests.docs.chapters import ROOT

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE_IN_TABLE = re.compile(r"(?<=[ (])`[^`\n]*\\\|[^`\n]*`")
_COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)


@dataclass(frozen=True)
class Chapter:
    """A page of the navigation."""

    section: str
    """Empty for pages that are in no section."""
    path: str
    """From the root of the repository."""

    @property
    def text(self) -> str:
        return (ROOT / self.path).read_text(encoding="utf-8")

    @property
    def title(self) -> str:
        """Its first heading."""
        return next(line for line in self.text.splitlines() if line.startswith("# "))[2:]

    @property
    def summary(self) -> str:
        """Its first sentence; empty where it begins with something else."""
        body = _COMMENT.sub("", self.text).partition(f"# {self.title}\n")[2]
        first = body.strip().partition("\n\n")[0].replace("\n", " ")
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", first)
        return (
            re.split(r"(?<=[.:?]) ", plain)[0].removesuffix(":") if re.match(r"\w|`", plain) else ""
        )


def settings() -> dict[str, Any]:
    """What `mkdocs.yml` says."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return loaded


def navigation(entries: list[Any] | None = None, section: str = "") -> Iterator[Chapter]:
    """The pages of the navigation, in its order."""
    for entry in settings()["nav"] if entries is None else entries:
        if isinstance(entry, str):
            yield Chapter(section, entry)
            continue
        for title, value in entry.items():
            if isinstance(value, str):
                yield Chapter(section, value)
            else:
                yield from navigation(value, title)


def stage(folder: Path) -> None:
    """Copies the pages, and every file that they link to, into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    pending = [*settings()["extra_css"], *(chapter.path for chapter in navigation())]
    done = set[str]()
    while pending:
        name = pending.pop()
        if name in done:
            continue
        done.add(name)
        source, target = ROOT / name, folder / name
        if source.is_dir():
            text = _listing(name)
            target = folder / name / "index.md"
        elif source.suffix == ".md":
            text = source.read_text(encoding="utf-8")
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        # a backslash before `|` in code is GitHub's; Python-Markdown would show it
        shown = _CODE_IN_TABLE.sub(lambda found: found[0].replace("\\|", "|"), text)
        target.write_text(shown, encoding="utf-8")
        pending += _linked(text, target.relative_to(folder).parent)


def _listing(name: str) -> str:
    """A page for a folder that pages link to: its source files."""
    files = sorted(
        path.relative_to(ROOT / name).as_posix()
        for path in (ROOT / name).rglob("*")
        if path.suffix in {".jsonl", ".md", ".py", ".toml", ".yaml", ".yml"}
    )
    return f"# {name}\n\n" + "".join(f"- [{file}]({file})\n" for file in files)


def _linked(text: str, parent: Path) -> Iterator[str]:
    """The files and folders of the repository that a page in `parent` links to."""
    for link in _LINK.findall(_FENCED.sub("", text)):
        target = link.partition("#")[0]
        if target and not urlsplit(link).scheme:
            path = (ROOT / parent / unquote(target)).resolve()
            if not path.exists():
                raise FileNotFoundError(f"{parent}: no {link}")
            yield path.relative_to(ROOT).as_posix()


def finish(pages: Path, site: Path) -> list[str]:
    """Adds Markdown and `llms.txt` to a built site; returns its broken links."""
    for page in sorted(pages.rglob("*.md")):
        name = page.relative_to(pages)
        original = ROOT / name if (ROOT / name).is_file() else page
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original, site / name)
    (site / "llms.txt").write_text(llms_txt(), encoding="utf-8")
    return broken_links(site)


def llms_txt() -> str:
    """The navigation for language models: every page as Markdown, with its first sentence."""
    lines, section = [f"# {settings()['site_name']}", "", f"> {settings()['site_description']}"], ""
    for chapter in navigation():
        if chapter.section != section or len(lines) == 3:  # the head alone
            section = chapter.section
            lines += ["", f"## {section or 'Begin'}", ""]
        summary = f": {chapter.summary}" if chapter.summary else ""
        lines.append(f"- [{chapter.title}]({chapter.path}){summary}")
    return "\n".join(lines) + "\n"


@dataclass
class _Page(HTMLParser):
    """The links of a page, and the places in it that links can name."""

    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := named.get(name))}
        wanted = {"a": "href", "img": "src", "link": "href", "script": "src"}.get(tag)
        if wanted and (link := named.get(wanted)):
            self.links.append(link)


def broken_links(site: Path) -> list[str]:
    """`PAGE: LINK` for each link of a built site to a file or an anchor that it does not have."""
    pages: dict[Path, _Page] = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = _Page()
        pages[path].feed(path.read_text(encoding="utf-8"))
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = _file(site, path, unquote(parts.path))
            anchor = unquote(parts.fragment)
            known = pages[target].anchors | {"", "__top"} if target in pages else {"", anchor}
            if not target.is_file() or anchor not in known:
                broken.append(f"{path.relative_to(site).as_posix()}: {link}")
    return broken


def _file(site: Path, page: Path, link: str) -> Path:
    """The file that a link of a page leads to."""
    if not link:
        return page
    base = site if PurePosixPath(link).is_absolute() else page.parent
    target = Path(base, link.lstrip("/")).resolve()
    return target / "index.html" if target.is_dir() else target


def main(arguments: list[str] | None = None) -> int:
    """Stages the pages, or ends the built site."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("step", choices=["stage", "finish"])
    step = parser.parse_args(arguments).step
    pages, site = (ROOT / settings()[name] for name in ("docs_dir", "site_dir"))
    if step == "stage":
        stage(pages)
        return 0
    broken = finish(pages, site)
    sys.stderr.writelines(f"broken link: {line}\n" for line in broken)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
