"""What the README shows is what is there."""

from __future__ import annotations

import json
import math
import re
import tomllib
from pathlib import Path

from eyechart.harness.analysis.ranking.leaderboard import merge
from eyechart.harness.analysis.ranking.leaderboard_file import read_rows
from eyechart.harness.report.ranking.readme import BEGIN, END, markdown

README = Path(__file__).parent.parent / "README.md"


def test_the_leaderboard_is_the_published_one() -> None:
    """The block between the markers is what `bench leaderboard --readme` writes there."""
    published = merge(read_rows(README.parent / "results" / "leaderboard.csv"))
    assert f"{BEGIN}\n{markdown(published)}\n{END}" in README.read_text(encoding="utf-8")


def test_what_is_to_be_installed_can_be() -> None:
    """From a clone, by an extra that there is; the distribution is on no index."""
    extras = tomllib.loads((README.parent / "pyproject.toml").read_text())["project"]
    pages = [README, *(README.parent / "docs").glob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    named = set(re.findall(r"pip install (?:-q )?-e '\.\[(.*?)\]'", text))
    assert named >= {"dev", "inspect", "lm-eval", "vllm"}
    assert named <= set(extras["optional-dependencies"])
    for folder in ("harness", "providers", "tests", "docs", "."):
        for path in (README.parent / folder).glob("*.*"):
            if path.suffix in (".py", ".md") and path.name != "test_report_readme.py":
                assert "eyechart[" not in path.read_text(encoding="utf-8"), path


def test_the_card_of_the_embedded_model_says_what_its_files_are() -> None:
    """Words, width, layers, window and parameters."""
    model = README.parent / "providers" / "tiny" / "model"
    config = json.loads((model / "config.json").read_text())
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    weights = (model / "model.safetensors").read_bytes()
    header = json.loads(weights[8 : 8 + int.from_bytes(weights[:8], "little")])
    tensors = [tensor for name, tensor in header.items() if name != "__metadata__"]
    parameters = sum(math.prod(tensor["shape"]) for tensor in tensors)
    card = " ".join((model / "README.md").read_text(encoding="utf-8").split())
    assert len(tokenizer["model"]["vocab"]) == config["vocab_size"]
    for said in (
        f"{config['num_hidden_layers']} layers, width {config['hidden_size']}",
        f"{config['num_attention_heads']} heads, feed-forward {config['intermediate_size']}",
        f"{parameters:,} parameters in float32",
        f"a window of {config['max_position_embeddings']:,} tokens",
        f"a vocabulary of {config['vocab_size']}:",
    ):
        assert said in card, said
