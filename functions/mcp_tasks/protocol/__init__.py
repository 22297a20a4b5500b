"""The wire: JSON-RPC 2.0, MCP's error codes, `_meta`, and the mirrored HTTP headers.

No function here calls AWS or a tool: each depends on its arguments only.
"""
