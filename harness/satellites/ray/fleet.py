"""The engines or workers of a command on a cluster, and the stages that each block goes through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import msgspec

from eyechart.harness.plan.cost import UsageMeter
from eyechart.harness.plan.request import request_of
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.records import answered, failed
from eyechart.harness.run.room import Room
from eyechart.harness.satellites.ray.cluster import Cluster
from eyechart.harness.satellites.ray.rows import (
    BACK,
    BLOCK,
    MAX_TOKENS,
    RUN,
    SAMPLE,
    ResultRow,
    SampleRow,
    WorkerBudget,
    read_asked,
    read_stop,
    row_of,
)
from eyechart.harness.satellites.ray.worker import FactsActor, Worker, WorkerSetup
from eyechart.harness.settings.ray_options import RayOptions
from eyechart.harness.spec import exact_json
from eyechart.providers.base import ModelSettings, Request, StopRunError
from eyechart.providers.registry.model_name import ModelName
from eyechart.providers.vllm.offline import OfflinePlan, OfflineVllm
from eyechart.providers.vllm.server import first_error

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


@dataclass(frozen=True)
class Workers:
    """Processes that each open the model's provider and ask; vLLM has engines instead."""

    cluster: Cluster
    order: WorkerSetup
    number: int
    gpus: float
    """Number of GPUs of one worker."""

    @property
    def text(self) -> str:
        """The workers in words, for the user."""
        return f"{self.number} worker{'s' * (self.number > 1)}"

    async def facts(self) -> Mapping[str, object]:
        """The provider's facts, from a worker."""
        facts: Mapping[str, object] = await self._call(dict[str, object], "facts")
        return facts

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """The provider's counts, from a worker."""
        counts: list[int] | None = await self._call(
            list[_Count] | None, "count_tokens", list(prompts)
        )
        if counts is not None and len(counts) != len(prompts):
            raise StopRunError(f"a worker of Ray counted {len(counts)} of {len(prompts)} prompts")
        return counts

    async def _call(self, kind: Any, method: str, *arguments: Any) -> Any:
        """A worker's answer in JSON, checked to be of the type `kind`."""
        said = await self.cluster.call(FactsActor, self.order, method, *arguments, gpus=self.gpus)
        try:
            read = msgspec.convert(exact_json.loads(said), dict[str, Any])
            if "stop" in read:
                raise read_stop(str(read["stop"]))
            return msgspec.convert(read["value"], kind)
        except (KeyError, TypeError, ValueError) as error:
            raise StopRunError(f"a worker of Ray sent no valid {method}: {error}") from error

    def pipeline(self, dataset: Any) -> Any:
        """Sends each block through one worker."""
        import ray.data  # noqa: PLC0415  an extra

        return dataset.map_batches(
            Worker,
            fn_constructor_args=(self.order,),
            batch_size=None,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=self.number),
            num_gpus=self.gpus or None,
        )

    def why(self) -> str | None:
        """Why a job ended early; always `None`: a worker's errors come back with its rows."""
        return None


@dataclass(frozen=True)
class VllmEngines:
    """Engines of vLLM, through Ray Data's own batch inference."""

    cluster: Cluster
    order: WorkerSetup
    offline: OfflineVllm
    number: int

    @property
    def text(self) -> str:
        """The engines in words, for the user."""
        return f"{self.number} engine{'s' * (self.number > 1)} of vLLM"

    async def facts(self) -> Mapping[str, object]:
        return self.offline.facts()

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """Counts with the model's tokenizer and template."""
        plan = self.offline.plan()
        return [len(plan.tokens(prompt)) for prompt in prompts]

    def pipeline(self, dataset: Any) -> Any:
        """Sends each block through one engine. Prompts are converted to tokens before, as by
        `vllm serve`: Ray's own stages would add a second start token with many chat templates.
        """
        from ray.data.llm import build_processor, vLLMEngineProcessorConfig  # noqa: PLC0415

        on_gpu = self.cluster.resources.get("GPU", 0) >= 1
        config = vLLMEngineProcessorConfig(
            model_source=self.offline.settings.model,
            engine_kwargs=dict(self.offline.arguments),
            concurrency=(self.number, self.number),
            batch_size=BLOCK,
            accelerator_type=None,
            placement_group_config=None
            if on_gpu
            else {"bundles": [{"CPU": 1}] * self.offline.workers},
            log_engine_metrics=False,
            should_continue_on_error=True,
            chat_template_stage=False,
            tokenize_stage=False,
            detokenize_stage=False,
            prepare_multimodal_stage=False,
        )
        exchange = _Exchange(self.offline.plan(), self.order.temperature, self.order.seed)
        processor = build_processor(config, preprocess=exchange.before, postprocess=exchange.after)
        return processor(dataset).map(exchange.failed)

    def why(self) -> str | None:
        """Why a job ended early: the first error in the engines' logs on this machine."""
        return first_error(self.cluster.log_lines())


Fleet: TypeAlias = Workers | VllmEngines
"""The models on a cluster."""


def connect(
    options: RayOptions,
    name: ModelName,
    settings: ModelSettings,
    limits: RunLimits,
    *,
    seed: int,
    room: Room,
) -> tuple[Cluster, Fleet]:
    """The cluster, and the engines or workers that it gets.

    Raises:
        SetupError: Ray or vLLM is not installed, or there is no cluster.
    """
    offline = None
    if name.descriptor.is_engine(settings.base_urls):
        offline = OfflineVllm.of(settings)
    cluster = Cluster(options.address, options.workers or 1)
    gpus = int(cluster.resources.get("GPU", 0))
    on_gpu = name.descriptor.in_cluster == "gpu" and gpus > 0
    if offline is not None:
        number = options.workers or max(1, gpus // offline.workers)
    else:
        number = options.workers or (gpus if on_gpu else cluster.nodes)
    order = WorkerSetup.of(name, settings, limits, workers=number, seed=seed, room=room)
    if offline is not None:
        return cluster, VllmEngines(cluster, order, offline, number)
    return cluster, Workers(cluster, order, number, float(on_gpu))


@dataclass(frozen=True, slots=True)
class _Exchange:
    """The work on a row before and after the engine."""

    plan: OfflinePlan
    temperature: float | None
    seed: int

    def before(self, row: dict[str, Any]) -> dict[str, Any]:
        """The columns that the engine needs."""
        asked = read_asked(row)
        request = self._request(asked)
        return {
            "tokenized_prompt": self.plan.tokens(request.prompt),
            "sampling_params": self.plan.sampling(request),
        }

    def after(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row of results."""
        asked = read_asked(row)
        request = self._request(asked)
        bill = WorkerBudget()
        meter = UsageMeter(bill, self.plan.settings.system or "", is_counting=True)
        reply, _ = meter.settle(self.plan.reply(row, request), request.text, request.max_tokens)
        seconds = float(row["time_taken_llm"])
        record = answered(asked.sample, reply, attempts=1, latency_s=seconds, seed=request.seed)
        return row_of(ResultRow(asked.run, record, None, bill.hand_over()))

    def _request(self, asked: SampleRow) -> Request:
        return request_of(
            asked.sample, asked.max_tokens, self.temperature, self.seed, api=self.plan.settings.api
        )

    def failed(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row of a result. A prompt that the engine refused gets its row here, since `after`
        is not called for it.
        """
        why = row.get("__inference_error__") or ""
        if not why:
            return {name: row[name] for name in BACK}
        asked = read_asked({name: row[name] for name in (RUN, SAMPLE, MAX_TOKENS)})
        return row_of(ResultRow(asked.run, failed(asked.sample, self.plan.error(why), attempts=1)))
