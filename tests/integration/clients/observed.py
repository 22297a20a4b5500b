"""What the Python clients of this folder have in common: they tell what they observe."""
# mypy: ignore-errors

import json

import httpx


def tell(event, **observed):
    """Write one line to stdout, at once."""
    print(json.dumps({"event": event, **observed}), flush=True)


def plain(model):
    """A message's part as it is on the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def http_client(**options):
    """Tells the status of each response, and from which event its request resumes."""
    options["timeout"] = options.get("timeout") or httpx.Timeout(30, read=300)  # as the SDK's own
    return httpx.AsyncClient(**options, event_hooks={"response": [_tell_http]})


async def _tell_http(response):
    request = response.request
    resumes = request.headers.get("last-event-id")
    tell("http", method=request.method, status=response.status_code, lastEventId=resumes)
