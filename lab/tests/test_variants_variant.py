"""Variants as they are written, and what is refused with its place and a remedy."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from eyechart_lab.variants.choices import (
    Differential,
    DualChunk,
    GatedHeads,
    Kerple,
    LogN,
    NoPositions,
    Pause,
    PRope,
    Randomised,
    Relu,
    ReRope,
    Rope,
    SeqVcr,
    Softmax,
    Strided,
    Window,
    Yarn,
)
from eyechart_lab.variants.reading import variant_keys
from eyechart_lab.variants.variant import Variant, read_variant


@pytest.mark.parametrize(
    ("given", "field", "expected"),
    [
        ({}, "positions", Rope(base=10_000)),
        ({"positions": {"rope": {"base": 5}}}, "positions", Rope(base=5)),
        ({"positions": "rope"}, "positions", Rope()),
        ({"positions": {"rope": None}}, "positions", Rope()),
        ({"positions": {"p_rope": 0.25}}, "positions", PRope(share=0.25)),
        ({"positions": {"p_rope": {"base": 9}}}, "positions", PRope(share=0.75, base=9)),
        ({"positions": {"kerple": "power"}}, "positions", Kerple(kernel="power")),
        ({"positions": {"randomised": {"of": 64}}}, "positions", Randomised(of=64)),
        ({"attention": "differential"}, "attention", Differential()),
        ({"attention": {"window": 8}}, "attention", Window(window=8, sinks=4)),
        ({"attention": {"sinks": 1, "window": 8}}, "attention", Window(window=8, sinks=1)),
        ({"attention": {"softmax": {}}}, "attention", Softmax()),
        ({"temperature": "log_n"}, "temperature", LogN()),
        ({"stretch": "none"}, "stretch", NoPositions()),
        ({"stretch": {"yarn": 2}}, "stretch", Yarn(factor=2)),
        ({"stretch": "dual_chunk"}, "stretch", DualChunk()),
        ({"stretch": {"dual_chunk": 4}}, "stretch", DualChunk(yarn=4)),
        ({"stretch": {"rerope": 8}}, "stretch", ReRope(window=8)),
        ({"attention": {"relu": {"by": "length"}}}, "attention", Relu(by="length")),
        ({"attention": {"strided": 8}}, "attention", Strided(every=8)),
        ({"gate": "sigmoid"}, "gate", GatedHeads()),
        ({"gate": {"sigmoid": "heads"}}, "gate", GatedHeads(of="heads")),
        ({"tokens": {"pause": 2}}, "tokens", Pause(count=2)),
        ({"loss": "seq_vcr"}, "loss", SeqVcr()),
        ({"loss": {"seq_vcr": {"layer": 2}}}, "loss", SeqVcr(layer=2)),
    ],
)
def test_written_forms(given: dict[str, Any], field: str, expected: object) -> None:
    """A name, a number after it, or a mapping; and what is written from it is read again."""
    variant = Variant.model_validate(given, strict=True)
    assert getattr(variant, field) == expected
    assert type(getattr(variant, field)) is type(expected)
    written = variant.model_dump(mode="json")
    assert Variant.model_validate(written, strict=True) == variant
    assert read_variant(dict(sorted(written.items()))) == variant


def test_what_is_written_is_as_in_a_study() -> None:
    """Short where one number or word says all."""
    variant = Variant.model_validate(
        {
            "positions": {"kerple": "log"},
            "attention": {"window": 8, "sinks": 2},
            "temperature": "adaptive",
        }
    )
    assert variant.model_dump(mode="json") == {
        "layers": 2,
        "width": 64,
        "heads": 4,
        "inner": None,
        "attention": {"window": 8, "sinks": 2},
        "gate": "none",
        "positions": {"kerple": "log"},
        "temperature": "adaptive",
        "stretch": "none",
        "loss": "none",
        "tokens": "none",
    }


@pytest.mark.parametrize(
    ("given", "place", "message"),
    [
        ({"widht": 3}, "widht", "Extra inputs"),
        ({"layers": 0}, "layers", "greater than or equal to 1"),
        ({"heads": 3}, "heads", "3 heads do not divide the width 64; change one of them"),
        ({"positions": {"rop": {}}}, "positions", "no 'rop'; did you mean 'rope'?"),
        ({"positions": {}}, "positions", "is empty; known: none, sinusoidal"),
        ({"positions": 3}, "positions", "3 names no mechanism; known: none, sinusoidal"),
        ({"positions": {"rope": {"base": 0}}}, "positions.rope.base", "or equal to 1"),
        ({"positions": {"rope": {"bas": 1}}}, "positions.rope.bas", "Extra inputs"),
        ({"positions": {"rope": 1}}, "positions.rope", "takes no 1; write {rope: {base: …}}"),
        ({"positions": {"alibi": 3}}, "positions.alibi", "'alibi' takes no 3; write alibi"),
        (
            {"positions": {"rope": {}, "alibi": {}}},
            "positions.rope",
            "'rope' and 'alibi' stand together; choose one of them",
        ),
        ({"attention": "window"}, "attention", "'window' needs a number; write {window: 64}"),
        ({"attention": {"window": None}}, "attention", "needs a number; write {window: 64}"),
        ({"stretch": "yarn"}, "stretch", "'yarn' needs a number; write {yarn: 2}"),
        ({"stretch": {"linear": {}}}, "stretch", "'linear' needs a number; write {linear: 2}"),
        ({"attention": {"window": 5, "sink": 3}}, "attention.window.sink", "Extra inputs"),
        (
            {"positions": "alibi", "stretch": {"yarn": 2}},
            "stretch",
            "positions is alibi; write positions: rope, or stretch: none",
        ),
        (
            {"positions": {"p_rope": 0.5}, "stretch": {"linear": 2}},
            "stretch",
            "positions is p_rope; write positions: rope, or stretch: none",
        ),
        (
            {"stretch": {"dual_chunk": 0}},
            "stretch.dual_chunk.yarn",
            "greater than or equal to 1",
        ),
        ({"stretch": {"yarn": 1}}, "stretch.yarn.factor", "greater than 1"),
        (
            {"stretch": "dual_chunk", "attention": {"window": 5}},
            "stretch",
            "write attention: softmax, or stretch: none",
        ),
        ({"width": 8, "stretch": {"ntk": 2}}, "stretch", "write stretch: {linear: 2}, or use"),
        (
            {"attention": "relu", "temperature": "log_n"},
            "temperature",
            "needs attention softmax, window, strided, off_by_one or differential, not relu",
        ),
        (
            {"attention": "off_by_one", "temperature": "adaptive"},
            "temperature",
            "needs attention softmax, window or strided, not off_by_one; change attention",
        ),
        (
            {"loss": {"seq_vcr": 3}},
            "loss.seq_vcr",
            "write {seq_vcr: {variance: …, covariance: …, layer: …}}",
        ),
        ({"loss": "seq_vcr", "layers": 1}, "loss", "write layers: 2, or loss: none"),
        ({"loss": {"seq_vcr": {"layer": 3}}}, "loss", "layer is 3, and the model has 2"),
        ({"width": 12}, "positions", "a head has 3 to turn; make width / heads a multiple of 2"),
        (
            {"width": 9, "heads": 3, "attention": "differential", "positions": "none"},
            "attention",
            "'differential' makes one head of two, and heads is 3; write heads: 4, or another",
        ),
        (
            {"attention": "differential", "positions": "relative"},
            "positions",
            "'relative' has one key of a distance, and differential attention two",
        ),
        (
            {"attention": {"window": 5}, "positions": {"randomised": {"encoding": "alibi"}}},
            "positions",
            "write attention: softmax, or encoding: sinusoidal",
        ),
        (
            {"width": 12, "positions": {"randomised": {"encoding": "rope"}}},
            "positions",
            "'randomised' turns pairs of numbers, and a head has 3 to turn",
        ),
        (
            {"positions": {"t5": {"longest": 16}}},
            "positions.t5",
            "16 of 32 buckets have one distance each; write longest: 32, or more",
        ),
        ({"attention": "delta_rule"}, "positions", "write positions: none, or sinusoidal"),
        ({"stretch": "rerope"}, "stretch", "'rerope' needs a number; write {rerope: 16}"),
        ({"tokens": "pause"}, "tokens", "'pause' needs a number; write {pause: 4}"),
        (
            {"width": 9, "heads": 3, "positions": "sinusoidal"},
            "positions",
            "'sinusoidal' needs an even width, not 9",
        ),
    ],
)
def test_refused(given: dict[str, Any], place: str, message: str) -> None:
    """One mistake, at the field that is to be changed."""
    with pytest.raises(ValidationError) as raised:
        Variant.model_validate(given, strict=True)
    (error,) = raised.value.errors()
    assert ".".join(map(str, error["loc"])) == place
    assert message in error["msg"]
    with pytest.raises(ValueError, match=rf"^variant\.{place}: ") as again:
        read_variant(given)
    assert "\n" not in str(again.value)


def test_what_is_trained_once() -> None:
    """Stretching and the adaptive temperature apply to the same trained model; a loss does not."""
    plain = Variant()
    for given in ({"stretch": {"yarn": 2}}, {"temperature": "adaptive"}):
        variant = Variant.model_validate(given)
        assert variant != plain
        assert variant.trained_as == plain
    mean, drawn = (
        Variant.model_validate({"positions": {"randomised": {"asked": asked}}})
        for asked in ("mean", "drawn")
    )
    assert drawn.trained_as == mean != drawn
    for given in ({"loss": "seq_vcr"}, {"temperature": "log_n"}, {"attention": "relu"}):
        variant = Variant.model_validate(given)
        assert variant.trained_as == variant


def test_keys_at_a_place() -> None:
    """Those of a variant and of a mechanism, for a remedy that names them."""
    assert variant_keys(()) == list(Variant.model_fields)
    assert variant_keys(("positions", "p_rope")) == ["share", "base"]
    assert variant_keys(("attention", "window")) == ["window", "sinks"]
    assert variant_keys(("positions", "stuff")) == []
