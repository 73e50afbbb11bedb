"""Which Ray cluster `--engine` names."""

from __future__ import annotations

import pytest

from eyechart.harness.settings.ray_options import RayOptions


@pytest.mark.parametrize(
    ("text", "cluster"),
    [
        ("ray", RayOptions()),
        ("ray:auto", RayOptions("auto")),
        ("ray,workers=8", RayOptions(workers=8)),
        ("ray:10.0.0.7:6379,workers=16", RayOptions("10.0.0.7:6379", 16)),
    ],
)
def test_an_engine_is_a_cluster_and_its_workers(text: str, cluster: RayOptions) -> None:
    """Either may be left out; it is written as it is read."""
    assert RayOptions.read(text) == cluster
    assert str(cluster) == text


@pytest.mark.parametrize(
    "given", ["", "Ray", "ray:", "rays", "ray,8", "ray,workers=", "ray,workers=0", "ray:a b", 1]
)
def test_another_text_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="must be ray, ray:ADDRESS or ray:ADDRESS,workers=N"):
        RayOptions.read(given)
