"""The provider `command`: a program that reads the prompt from stdin and prints the reply."""

from __future__ import annotations

import asyncio
import hashlib
import shlex
import shutil
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eyechart.providers.base import (
    BadRequestError,
    ModelSettings,
    Reply,
    Request,
    ServerFaultError,
    SetupError,
)


@dataclass(frozen=True)
class CommandProvider:
    """Starts the program anew for each request."""

    program: Path
    arguments: Sequence[str]

    async def complete(self, request: Request) -> Reply:
        try:
            prompt = request.prompt.encode()
        except UnicodeEncodeError as error:
            raise BadRequestError("the prompt is not UTF-8") from error
        with tempfile.TemporaryFile() as file:  # a program need not read all of it
            file.write(prompt)
            file.seek(0)
            try:
                process = await asyncio.create_subprocess_exec(
                    self.program, *self.arguments, stdin=file, stdout=PIPE, stderr=PIPE
                )
            except OSError as error:
                raise SetupError(f"{self.program} cannot be started: {error.strerror}") from error
        try:
            printed, said = await process.communicate()
        finally:
            if process.returncode is None:  # the request was cancelled
                process.kill()
                await process.wait()
        if process.returncode:
            why = " ".join(said.decode(errors="replace").split()) or "it says nothing"
            raise ServerFaultError(f"{self.program} ended with {process.returncode}: {why}")
        return Reply(printed.decode(errors="replace"))

    async def facts(self) -> Mapping[str, object]:
        """The content of the program, which may change while its name stays."""
        digest = hashlib.sha256(self.program.read_bytes()).hexdigest()
        return {"engine": "command", "sha256": digest}

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:  # noqa: ARG002
        return None

    async def aclose(self) -> None:
        """Nothing is left open."""


def open_provider(settings: ModelSettings) -> CommandProvider:
    """Opens `command/PROGRAM`, or `"command/PROGRAM ARGUMENT"`.

    Raises:
        SetupError: there is no such program, or a setting is given that no program gets.
    """
    settings.refuse_all_but()
    name, *arguments = shlex.split(settings.model) or [""]
    if (program := shutil.which(name)) is None:
        raise SetupError(f"there is no program {name!r}; install it, or give its path")
    return CommandProvider(Path(program), arguments)
