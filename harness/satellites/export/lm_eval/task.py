"""Data and scoring of these tasks, for lm-eval.

This file is `utils.py` beside the exported tasks, where lm-eval's `!function` finds it. It needs
nothing but lm-eval: the scoring is in the package beside it, the samples are in the folders.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from datasets import Dataset
from lm_eval.api.task import ConfigurableTask

HERE = Path(__file__).resolve().parent


def _scoring() -> Any:
    """`bare_text` of the package beside this file, under a name that no other export here has."""
    name = f"eyechart_scoring_{hashlib.sha256(str(HERE).encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name,
            HERE / "eyechart_scoring" / "__init__.py",
            submodule_search_locations=[str(HERE / "eyechart_scoring")],
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return importlib.import_module(f"{name}.bare_text")


class CellTask(ConfigurableTask):  # type: ignore[misc]  # lm-eval brings no types
    """One condition of one task at one length. The folder may be moved."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__(
            config={name: value for name, value in (config or {}).items() if name != "class"}
        )

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **_: Any) -> None:
        """Reads the samples; lm-eval itself would resolve the path from its working directory."""
        with (HERE / (dataset_kwargs or {})["rows"]).open(encoding="utf-8") as rows:
            self.dataset = {"test": Dataset.from_list([json.loads(row) for row in rows])}


def process_results(doc: dict[str, Any], results: list[str | None]) -> dict[str, float]:
    """1 for a reply that `bench score` judges `correct`, else 0; see `bare_text.is_correct`."""
    return {"acc": float(_scoring().is_correct(doc, results[0] or ""))}
