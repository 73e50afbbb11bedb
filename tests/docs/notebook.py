"""Executes a notebook without Jupyter: the outputs of its code cells are renewed.

A cell is executed as Jupyter does it: the value of an expression on its last line is its result,
shown as text and as the HTML or the picture that the object has. All cells share their names.
"""

from __future__ import annotations

import ast
import base64
import json
from pathlib import Path
from typing import Any

import altair as alt

from tests.docs.chapters import ROOT
from tests.docs.scratch import ChapterError, Scratch, same_text

NOTEBOOK = ROOT / "docs" / "quickstart.ipynb"
_SHOWN = ("image/png", "text/html", "text/plain")
"""MIME types that are kept of a result."""


def renew(path: Path, folder: Path) -> str:
    """The text of a notebook with the outputs of today; its cells run in `folder`.

    Raises:
        ChapterError: a cell raised an error.
    """
    notebook = json.loads(path.read_text(encoding="utf-8"))
    scratch = Scratch(folder)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    with alt.renderers.enable("default"):  # what a cell sets ends here
        for count, cell in enumerate(cells, 1):
            cell["execution_count"] = count
            try:
                cell["outputs"] = _outputs("".join(cell["source"]), scratch, count)
            except ChapterError as error:
                raise ChapterError(f"{path.name}, cell {count}: {error}") from None
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def without_pictures(text: str) -> list[dict[str, Any]]:
    """The cells of a notebook; their pictures, which fonts change, are left out."""
    cells: list[dict[str, Any]] = json.loads(text)["cells"]
    for cell in cells:
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop("image/png", None)
            output.pop("metadata", None)
    return cells


def _outputs(source: str, scratch: Scratch, count: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    scratch.python(ast.unparse(tree), 0)
    shown: dict[str, Any] = {}
    if isinstance(last, ast.Expr):
        with scratch.code():
            value = eval(ast.unparse(last), scratch.names)  # noqa: S307
            shown = {} if value is None else _shown(value, scratch.folder)
    outputs: list[dict[str, Any]] = []
    if printed := scratch.taken():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed)})
    if shown:
        result = {"data": shown, "metadata": {}, "output_type": "execute_result"}
        outputs.append({"execution_count": count, **result})
    return outputs


def _shown(value: object, folder: Path) -> dict[str, Any]:
    """MIME type -> what a notebook shows of an object."""
    data: dict[str, Any] = {"text/plain": repr(value)}
    if hasattr(value, "_repr_mimebundle_"):
        bundle = value._repr_mimebundle_()
        data |= bundle[0] if isinstance(bundle, tuple) else bundle
    elif hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_()
    return {
        name: base64.b64encode(data[name]).decode()
        if isinstance(data[name], bytes)
        else _lines(same_text(data[name], folder))
        for name in _SHOWN
        if data.get(name)
    }


def _lines(text: str) -> list[str]:
    """A text as notebooks keep it."""
    return text.splitlines(keepends=True)
