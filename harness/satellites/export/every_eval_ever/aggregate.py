"""A run as a record of the EvalEval coalition's shared schema: "Every Eval Ever" 0.3.0.

One JSON file a run, with a result for every cell and, for every condition, its area and effective
length; `samples` has the file beside it. The schema is that of the package `every-eval-ever` (arXiv
2606.14516), which the tests check against; it needs a newer Python than this project does, so
records are made here as plain dictionaries.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Literal, TypeAlias

from eyechart.harness.analysis.length.curve import RESAMPLES
from eyechart.harness.analysis.length.effective_length import EffectiveLength
from eyechart.harness.analysis.length.interval import Bound, span_text
from eyechart.harness.analysis.samples.judged_run import JudgedCondition
from eyechart.harness.journal.manifest import Manifest
from eyechart.harness.journal.software import software
from eyechart.harness.satellites.export.model_identity import (
    UNKNOWN,
    ModelIdentity,
    Weights,
    identify,
)
from eyechart.harness.satellites.export.publishable import Publishable
from eyechart.harness.score.outcomes import OUTCOMES
from eyechart.harness.spec import Condition, TaskSpec, exact_json
from eyechart.harness.spec.columns import LINE, MEASURES

SCHEMA_VERSION = "0.3.0"
Json: TypeAlias = dict[str, Any]
Relationship: TypeAlias = Literal["first_party", "third_party", "collaborative", "other"]

_LEVEL = 0.95
_FURTHER = MEASURES[MEASURES.index("accuracy_of_answered") :]
"""The measures of a cell besides its accuracy."""
_UNSAFE = re.compile(r'[<>:"/\\|?*\x00-\x1f]')
"""Characters that the names of the coalition's folders may not contain."""
_DEVICES = re.compile(r"(?i:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?|data")


@dataclass(frozen=True, slots=True)
class Publisher:
    """Values that the record needs and a run's folder does not contain."""

    organization: str = UNKNOWN
    """Who publishes the results."""
    relationship: Relationship = "other"
    """Relationship of whoever ran the evaluation to the model's developer."""
    benchmark: str = "eyechart"
    """The folder that the records go to, and the first word of their names."""
    model_id: str | None = None
    """The model's name on its hub, `organisation/model`."""
    weights: Weights | None = None


@dataclass(frozen=True)
class Evaluation:
    """One run to be written in the schema."""

    publishable: Publishable
    publisher: Publisher = Publisher()

    @property
    def _manifest(self) -> Manifest:
        return self.publishable.run.manifest

    @cached_property
    def spec(self) -> TaskSpec:
        """The task's spec with which the run was made."""
        return self._manifest.task_spec()

    @cached_property
    def model(self) -> ModelIdentity:
        """The model that answered."""
        return identify(self._manifest, self.publisher.model_id, self.publisher.weights)

    @property
    def id(self) -> str:
        """Stays the same when the run grows: benchmark and task with the run's settings, the model,
        and the time of the first answer.
        """
        name = f"{self.name}@{self._manifest.task_version}-{self.publishable.settings_hash}"
        return f"{name}/{self.model.id}/{self.publishable.first_answer_s:.3f}"

    @property
    def uuid(self) -> uuid.UUID:
        """The name of the files: of version 4, as the coalition requires, computed from `id`."""
        return uuid.UUID(bytes=hashlib.sha256(self.id.encode()).digest()[:16], version=4)

    @property
    def folder(self) -> PurePosixPath:
        """`data/<benchmark>/<developer>/<model>`."""
        parts = (self.publisher.benchmark, self.model.developer, self.model.model)
        return PurePosixPath("data", *map(_folder_name, parts))

    @property
    def aggregate_path(self) -> PurePosixPath:
        return self.folder / f"{self.uuid}.json"

    @property
    def samples_path(self) -> PurePosixPath:
        return self.folder / f"{self.uuid}_samples.jsonl"

    @property
    def name(self) -> str:
        """`eyechart.counting.ones`."""
        return ".".join([self.publisher.benchmark, *self._manifest.task.split("/")])

    def name_of(self, label: str, line: str | None = None) -> str:
        """`eyechart.counting.ones/separator=none,strategy=direct/length=5`: the name of the results
        of one condition, or of one line of it; of forced choices with `read=likelihood`. `line`:
        see `JudgedRun.line_names`.
        """
        condition = [] if label == Condition().label else [label]
        read = ["read=likelihood"] if self.publishable.run.options else []
        return "/".join(
            [self.name, *read, *condition, *([] if line is None else [f"length={line}"])]
        )

    def aggregate(self, samples: Mapping[str, object] | None = None) -> Json:
        """The record; `samples` is its `detailed_evaluation_results`: where the samples are."""
        manifest = self._manifest
        record: Json = {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": self.id,
            "evaluation_timestamp": f"{self.publishable.first_answer_s:.3f}",
            "retrieved_timestamp": f"{self.publishable.last_answer_s:.3f}",
            "source_metadata": {
                "source_name": "eyechart",
                "source_type": "evaluation_run",
                "source_organization_name": self.publisher.organization,
                "evaluator_relationship": self.publisher.relationship,
                "additional_details": strings(
                    incomplete=self.publishable.missing_text or None,
                    commands=manifest.commands if len(manifest.commands) > 1 else None,
                    cost=self._cost(),
                ),
            },
            "eval_library": {
                "name": "eyechart",
                "version": manifest.software.get("eyechart", UNKNOWN),
                "additional_details": strings(
                    scored_by=f"eyechart {software()['eyechart']}",
                    python=manifest.software.get("python"),
                    platform=manifest.software.get("platform"),
                ),
            },
            "model_info": self._model_info(),
            "evaluation_results": list(self._results()),
        }
        if manifest.recorded is not None:  # when the model was asked is not known to the second
            del record["evaluation_timestamp"]
        return record if samples is None else record | {"detailed_evaluation_results": samples}

    def _cost(self) -> str | None:
        """`$1.23 at the prices of 2026-11-03 (genai-prices 0.2.3)`."""
        cost = self.publishable.run.cost
        return None if cost is None else f"{cost} at the prices of {cost.prices_of}"

    def _model_info(self) -> Json:
        model, manifest = self.model, self._manifest
        weights = model.weights if model.weights == UNKNOWN else f"{model.weights}_weights"
        info: Json = {"name": model.name, "id": model.id, "developer": model.developer}
        if model.platform is not None:
            info["inference_platform"] = model.platform
        if model.engine is not None:
            version = model.engine_version or UNKNOWN
            info["inference_engine"] = {"name": model.engine, "version": version}
        return info | {
            "additional_details": {
                "deployment_type": model.deployment,
                "model_availability": weights,
                **strings(answered_by=manifest.answered_by or None),
                **strings(**{f"server.{key}": value for key, value in manifest.server.items()}),
            }
        }

    def _results(self) -> Iterator[Json]:
        """For each condition: a result for each scored cell, then its area and effective length."""
        for judged in self.publishable.run.conditions.values():
            for place, cell in zip(
                judged.scored_cells.index, judged.scored_cells.to_dict("records"), strict=True
            ):
                line = self.publishable.run.line_names[place]
                yield self._cell(judged, line, {str(name): value for name, value in cell.items()})
            estimate = judged.effective_length()
            if estimate is not None:
                if not judged.adaptive:
                    yield self._area(judged, estimate)
                if estimate.length is not None and estimate.is_ranked:
                    yield self._effective_length(judged, estimate, estimate.length)

    def _cell(self, judged: JudgedCondition, line: str, cell: Json) -> Json:
        n, lengths = int(cell["n"]), {name: int(cell[name]) for name in LINE}
        return self._result(
            judged,
            line,
            metric={
                "evaluation_description": (
                    "Share of the scored samples that were answered correctly. Refused, cut-off "
                    "and unreadable replies and prompts beyond the window are scored as not "
                    "correct; samples without a reply are not scored."
                ),
                "metric_id": "accuracy",
                "metric_name": "Accuracy",
                "metric_kind": "accuracy",
                "metric_unit": "proportion",
                "metric_parameters": lengths,
                "max_score": 1.0,
            },
            score=cell["accuracy"],
            interval=(cell["ci_low"], cell["ci_high"]),
            uncertainty={"num_samples": n},
            method="Wilson score",
            details=strings(
                level="cell",
                **lengths,
                scored=n,
                **{name: int(cell[name]) for name in OUTCOMES},
                **{name: _known(cell[name]) for name in _FURTHER},
            ),
        )

    def _area(self, judged: JudgedCondition, estimate: EffectiveLength) -> Json:
        return self._result(
            judged,
            metric={
                "evaluation_description": (
                    "Area under accuracy over the logarithm of length, of the area if all were "
                    "right, over the lengths that were tested."
                ),
                "metric_id": f"{self.publisher.benchmark}.area",
                "metric_name": "Area under accuracy over log length",
                "metric_kind": "area",
                "metric_unit": "proportion",
                "metric_parameters": self._tested_range(judged),
                "max_score": 1.0,
            },
            score=round(estimate.area, 6),
            interval=estimate.area_ci,
            uncertainty=self._sample_counts(judged) | _RESAMPLED,
            method=_BOOTSTRAP,
            details=strings(level="condition", lengths=judged.lengths),
        )

    def _effective_length(
        self, judged: JudgedCondition, estimate: EffectiveLength, length: Bound
    ) -> Json:
        """A bound outside the tested range becomes a number: 0 below the shortest tested length,
        the longest tested one above it. The details hold the bound itself.
        """
        unit = self.publishable.run.spec.unit
        return self._result(
            judged,
            metric={
                "evaluation_description": (
                    f"Length, in {unit}, where accuracy falls below the threshold: the median of "
                    "the posterior of a curve that never rises; 0 below the shortest tested "
                    "length. Never beyond the longest tested length: where details say '>', the "
                    "model is right to more. Where one_threshold is no, accuracy rises above the "
                    "threshold again, and the value is the certified length: the longest group of "
                    "lines such that it and every shorter one reach the threshold. A length that "
                    "something else than sight limits is not exported."
                ),
                "metric_id": f"{self.publisher.benchmark}.length",
                "metric_name": "Effective length",
                "metric_kind": "effective_length",
                "metric_unit": unit,
                "metric_parameters": self._tested_range(judged) | {"threshold": estimate.threshold},
                "max_score": float(max(judged.lengths)),
            },
            score=_as_number(length),
            interval=tuple(map(_as_number, estimate.length_ci)),
            uncertainty=self._sample_counts(judged)
            | ({} if estimate.one_threshold else _RESAMPLED),
            method=_POSTERIOR if estimate.one_threshold else _BOOTSTRAP,
            details=strings(
                level="condition",
                lengths=judged.lengths,
                effective_length=str(length),
                effective_length_ci=span_text(estimate.length_ci),
                limited_by=estimate.limit.by,
                one_threshold="yes" if estimate.one_threshold else "no",
                lapse=round(estimate.lapse, 6),
                tested_length=str(estimate.tested_length),
                tested_length_ci=span_text(estimate.tested_length_ci),
            ),
        )

    def _tested_range(self, judged: JudgedCondition) -> Json:
        return {"shortest": min(judged.lengths), "longest": max(judged.lengths)}

    def _sample_counts(self, judged: JudgedCondition) -> Json:
        return {"num_samples": int(judged.cells["n"].sum())}

    def _result(
        self,
        judged: JudgedCondition,
        line: str | None = None,
        *,
        metric: Json,
        score: float,
        interval: tuple[float, ...],
        uncertainty: Json,
        method: str,
        details: Mapping[str, str],
    ) -> Json:
        low, high = interval
        return {
            "evaluation_result_id": result_id(judged.label, line, metric["metric_id"]),
            "evaluation_name": self.name_of(judged.label, line),
            "source_data": self._source_data(),
            "metric_config": {
                **metric,
                "lower_is_better": False,
                "score_type": "continuous",
                "min_score": 0.0,
            },
            "score_details": {
                "score": score,
                "uncertainty": {
                    "confidence_interval": {
                        "lower": round(low, 6),
                        "upper": round(high, 6),
                        "confidence_level": _LEVEL,
                        "method": method,
                    },
                    **uncertainty,
                },
                "details": {
                    **strings(condition=judged.label, control=judged.control or None),
                    **self._reading(judged),
                    **strings(
                        **{f"axis.{axis}": value for axis, value in judged.condition.items()}
                    ),
                    **details,
                },
            },
            "generation_config": self._generation(),
        }

    def _reading(self, judged: JudgedCondition) -> dict[str, str]:
        """That answers are forced choices, and the accuracy of guesses; empty for replies."""
        if not self.publishable.run.options or judged.curve is None:
            return {}
        return strings(read="likelihood", chance=round(judged.curve.mean_chance, 6))

    def _source_data(self) -> Json:
        """The source of the samples: a task file; there is no data set to download."""
        manifest, spec = self._manifest, self.spec
        return {
            "dataset_name": f"{self.publisher.benchmark}/{manifest.task}",
            "source_type": "other",
            "additional_details": strings(
                task=manifest.task,
                task_version=manifest.task_version,
                task_digest=manifest.task_digest,
                title=spec.title,
                citation=spec.source,
                generator=spec.generator,
                items=spec.items,
                seed=manifest.settings.seed,
                dataset_fingerprint=self.publishable.run.fingerprint(),
                samples=sum(cell.samples for cell in manifest.cells),
            ),
        }

    def _generation(self) -> Json:
        manifest = self._manifest
        settings = manifest.settings.given()
        arguments = {
            "temperature": settings.pop("temperature"),
            "max_tokens": settings.pop("max_tokens"),
            "execution_command": manifest.commands[-1] if manifest.commands else None,
            "prompt_template": self.spec.prompt,
        }
        if manifest.recorded is not None:
            settings = {"recorded": str(manifest.recorded)}
        elif arguments["max_tokens"] is None:
            settings["max_tokens"] = "auto"
        return {
            "generation_args": {
                key: value for key, value in arguments.items() if value is not None
            },
            "additional_details": strings(**settings),
        }


_BOOTSTRAP = "percentile bootstrap over rows, which keep their lengths"
_RESAMPLED = {"num_bootstrap_samples": RESAMPLES}
_POSTERIOR = "quantiles of the posterior of a falling curve, its likelihood divided by dispersion"


def result_id(label: str, line: str | None, metric: str) -> str:
    """The id that joins a sample to its result: `separator=none|length=5|accuracy`."""
    return "|".join([label, *([] if line is None else [f"length={line}"]), metric])


def strings(**values: object) -> dict[str, str]:
    """The values that are not `None`, as texts, which the schema requires."""
    return {
        name: value if isinstance(value, str) else exact_json.dumps(value).decode()
        for name, value in values.items()
        if value is not None
    }


def _as_number(bound: Bound) -> float:
    return 0.0 if bound.sign == "<" else float(bound.length)


def _known(value: float) -> float | None:
    return None if value != value else value  # noqa: PLR0124  NaN


def _folder_name(name: str) -> str:
    """`name` as the coalition's package writes it in paths."""
    plain = _UNSAFE.sub("_", name).rstrip(". ") or UNKNOWN
    return f"_{plain}" if _DEVICES.fullmatch(plain) else plain
