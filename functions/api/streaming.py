"""The request path when answers are streamed: started instead of Lambda's own runtime by `stream`.

Notifications reach the client as they happen: progress and log messages of a call, and the changes
that a `subscriptions/listen` follows, for as long as the function may run.
"""

from __future__ import annotations

from typing import Any

from mcp_tasks.aws.streaming_runtime import Context, Response, StreamingHandler, serve


def load() -> StreamingHandler:
    """Start the server, as the import of `api.handler` does."""
    from api.handler import deployment, log_answer, logger, server
    from mcp_tasks.server.http.api_gateway import end_stream, from_api_gateway, streamed
    from mcp_tasks.tasks.task import now_ms

    @logger.inject_lambda_context(clear_state=True)
    def handle(event: dict[str, Any], context: Context, response: Response) -> None:
        channel = streamed(response, now_ms() + context.get_remaining_time_in_millis())
        answer = server.answer(from_api_gateway(event, deployment.auth), channel)
        log_answer(answer)
        end_stream(answer, response)

    return handle


if __name__ == "__main__":
    serve(load)
