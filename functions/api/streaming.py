"""The request path with streamed responses; `stream` starts it instead of Lambda's own runtime.

The client receives notifications when they happen: progress and log messages of a call, and the
changes of a `subscriptions/listen`, for as long as the function may run.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from mcp_tasks.aws.streaming_runtime import Context, Response, StreamingHandler, serve


def load() -> StreamingHandler:
    """Start the server, as the import of `api.handler` does."""
    from api.handler import deployment, log_response, logger, server
    from mcp_tasks.server.http.api_gateway import from_api_gateway
    from mcp_tasks.server.http.event_stream import end_stream, streamed_channel
    from mcp_tasks.server.http.exchange import accepts_events
    from mcp_tasks.server.http.quiet_stream import kept_alive
    from mcp_tasks.tasks.task import now_ms

    @logger.inject_lambda_context(clear_state=True)
    def handle(event: dict[str, Any], context: Context, stream: Response) -> None:
        began = now_ms()
        deadline_ms = began + context.get_remaining_time_in_millis()
        request = from_api_gateway(event, deployment.auth, deployment.principal)
        cors_headers = server.cors_headers(request)
        channel = streamed_channel(stream, deadline_ms, cors_headers)
        takes_events = accepts_events(request.headers.get("accept"))
        with kept_alive(channel) if takes_events else nullcontext(channel) as kept:
            response = server.answer(request, kept)
        log_response(response, began)
        end_stream(response, stream, cors_headers)

    return handle


if __name__ == "__main__":
    serve(load)
