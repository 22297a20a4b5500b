"""`prompts/get` (server/prompts.mdx, "Getting a Prompt")."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger

from ...protocol.errors import invalid_params
from ...redaction import client_errors_redacted
from ...registry.catalogue import Catalogue
from ..call import Call, Complete, InputNeeded, Method, Outcome
from .multi_round_trip import MultiRoundTrip

logger = Logger()


def get_prompt(catalogue: Catalogue, multi_round_trip: MultiRoundTrip) -> Method:
    """The method `prompts/get`."""

    def get(call: Call) -> Outcome:
        name = call.params.get("name")
        if not isinstance(name, str):
            raise invalid_params("params.name must be a string")
        entry = catalogue.prompts.get(name)
        if entry is None:
            raise invalid_params(f"Unknown prompt: {name[:64]}")
        logger.append_keys(prompt=entry.name)
        arguments = string_map(call.params.get("arguments"), "params.arguments")

        from ...registry.asking import ToolError
        from ...registry.schema import InvalidArguments

        prompt = entry.load()
        try:
            values = prompt.check_arguments(arguments)
        except InvalidArguments as error:
            raise invalid_params(f"Invalid arguments: {error}") from None

        @client_errors_redacted("prompt", ToolError)
        def fill_in(context: Any) -> dict[str, Any]:
            return prompt.get(values, context)

        try:
            result = multi_round_trip.run(call, entry.name, arguments, fill_in)
        except ToolError as error:
            raise invalid_params(str(error)) from None
        return result if isinstance(result, InputNeeded) else Complete(result)

    return get


def string_map(value: Any, where: str) -> dict[str, str]:
    """Check the arguments of a prompt or a completion: an object of strings, empty by default.

    Raises ProtocolError (-32602).
    """
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise invalid_params(f"{where} must be an object of strings")
    return value
