"""The work of `bench models`: the providers, what each needs, and the models that are known."""

from __future__ import annotations

from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.tables.lists import aligned, with_origins
from eyechart.harness.cli.terminal import echo, say, warn


def update_prices() -> None:
    """Fetches the newest list of prices, and prints where it is stored; raises `UpdateError` if
    there is no network, or what came is no list.
    """
    from datetime import UTC, datetime

    from eyechart.providers.catalog.price_list import update

    path, models = update(datetime.now(UTC).date())
    say(f"today's prices of {models:,} models are in {path}; all commands use them")


def list_models(*, as_json: bool) -> None:
    """Prints a line for each provider: what it is, what it needs and, if there are plugins, where
    it comes from; the document also has the models whose facts are known. Raises `SetupError` for a
    mistake in one of the user's files.
    """
    from eyechart.providers.catalog.model_facts import known_models, model_facts
    from eyechart.providers.registry.registry import listed

    model_facts("")  # a mistake in the file is raised here
    found, errors = listed()
    if as_json:
        providers = [
            {"provider": one.provider, "from": one.origin, "what": one.what, "needs": one.needs}
            for one in found
        ]
        facts = {name: model_facts(name) for name in known_models()}
        models = [
            {"model": name, **one.model_dump(mode="json", exclude_defaults=True)}
            for name, one in facts.items()
        ]
        print_document({"providers": providers, "models": models})
    else:
        rows = [(one.provider, one.origin, one.what, one.needs) for one in found]
        echo(*aligned(with_origins(("provider", "from", "what it is", "needs"), rows)))
    for error in errors:
        warn(str(error))
