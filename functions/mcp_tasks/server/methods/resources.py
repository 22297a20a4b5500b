"""`resources/read` (server/resources.mdx, "Reading Resources")."""

from __future__ import annotations

import json
from typing import Any, Final

from aws_lambda_powertools import Logger

from ...protocol.errors import invalid_params
from ...redaction import client_errors_redacted
from ...registry.catalogue import Catalogue
from ..call import Call, Complete, InputNeeded, Method, Outcome, ResourceNotFound
from .multi_round_trip import MultiRoundTrip

MAX_URI_CHARACTERS: Final = 2048
"""Every template is tried on every URI, so a longer one is refused unread."""

MAX_REPEATED_BYTES: Final = 4096
"""Of a URI in an error, as JSON."""

logger = Logger()


def read_resource(catalogue: Catalogue, multi_round_trip: MultiRoundTrip) -> Method:
    """The method `resources/read`."""

    def read(call: Call) -> Outcome:
        uri = call.params.get("uri")
        if not isinstance(uri, str):
            raise invalid_params("params.uri must be a string")
        found = catalogue.resource(uri) if len(uri) <= MAX_URI_CHARACTERS else None
        if found is None:
            raise _not_found(uri[:MAX_URI_CHARACTERS])
        entry, variables = found
        logger.append_keys(resource=entry.name)

        from ...registry.asking import ToolError
        from ...registry.resource import NotFound

        @client_errors_redacted("resource", NotFound, ToolError)
        def contents_of(context: Any) -> list[dict[str, Any]]:
            return entry.load().read(uri, variables, context)

        try:
            contents = multi_round_trip.run(call, uri, None, contents_of)
        except NotFound:
            raise _not_found(uri) from None
        except ToolError as error:
            raise invalid_params(str(error)) from None
        if isinstance(contents, InputNeeded):
            return contents
        # caching.mdx, "Cache Key": a response that depends on answers must not be cached.
        answered = call.input_responses is not None or call.request_state is not None
        return Complete(
            {"contents": contents},
            fresh_ms=0 if answered else entry.fresh_ms,
            cache_scope="private" if answered else entry.cache_scope,
        )

    return read


def _not_found(uri: str) -> ResourceNotFound:
    """The error that names the URI, or the beginning of a long one."""
    characters = MAX_REPEATED_BYTES // 12  # what JSON takes for an emoji
    return ResourceNotFound(uri if len(json.dumps(uri)) <= MAX_REPEATED_BYTES else uri[:characters])
