"""The server: from an HTTP request to its answer, for one protocol revision (2026-07-28).

`endpoint` checks a request and picks its method; `discovery`, `tool_calls` and `tasks_extension`
hold the methods, each beside the page of the specification that it is named after.
"""
