"""DynamoDB as moto has it, without HTTP: a call takes a fifth of the time.

botocore checks the parameters and parses the answer, and moto evaluates conditions and updates, all
as over HTTP. Left out are botocore's signatures and moto's way from a request to its handler.
"""

from __future__ import annotations

import json
from datetime import datetime
from threading import RLock
from types import SimpleNamespace
from typing import Any, Final

from botocore import xform_name
from botocore.model import OperationModel
from botocore.parsers import JSONParser
from moto.core.exceptions import JsonRESTError, ServiceException
from moto.dynamodb.responses import DynamoHandler

ONE_AT_A_TIME: Final = RLock()
"""moto checks a condition and writes in two steps, and copies its tables for a transaction."""


def without_http(client: Any, account: str) -> Any:
    """Let a DynamoDB client of botocore call moto's functions; returns the client."""

    def answer(model: OperationModel, params: dict[str, Any], **_: Any) -> tuple[Any, Any]:
        handler = DynamoHandler()
        handler.body = handler.params = json.loads(params["body"])
        handler.current_account, handler.region = account, client.meta.region_name
        try:
            with ONE_AT_A_TIME:
                result = getattr(handler, xform_name(model.name))().result
        except JsonRESTError as error:
            return _answer(model, error.code, error.description)
        except ServiceException as error:
            told = {"__type": error.code, "message": error.message}
            return _answer(model, 400, json.dumps(told))
        return _answer(model, 200, json.dumps(result, default=datetime.timestamp))

    # The event is botocore's for answering a call in its place (boto3 guide, "Extensibility").
    client.meta.events.register("before-call.dynamodb", answer)
    return client


def _answer(model: OperationModel, status: int, body: str) -> tuple[Any, Any]:
    """The answer as botocore parses it; of an error, what the error has beside its message too."""
    parser = JSONParser()
    response = {"status_code": status, "headers": {}, "body": body.encode()}
    parsed = parser.parse(response, model.output_shape)  # type: ignore[arg-type]  # None is taken
    if status >= 300:
        shape = model.service_model.shape_for_error_code(parsed["Error"]["Code"])
        parsed.update(parser.parse(response, shape) if shape else {})
    return SimpleNamespace(status_code=status), parsed
