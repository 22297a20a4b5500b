"""The MCP server: from an HTTP request to its response.

- `http/` reads the POST, checks it and writes the response, whole or as an event stream.
- `revisions/` has a module for each protocol revision, which knows its names and shapes.
- `methods/` has a module for each MCP method, named as its page of the specification is, and what
  those methods share: task creation, multi round-trip requests, the shape of a task on the wire.

A revision reads a request into a `Call` (`call.py`), a method answers it with an `Outcome`, and the
revision writes the outcome as its result. `server.py` puts a deployment's server together.
"""
