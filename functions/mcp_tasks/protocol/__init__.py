"""The wire: JSON-RPC 2.0, MCP's error codes, `_meta`, and the mirrored HTTP headers.

Nothing here knows DynamoDB, Step Functions or a tool; everything is a function of its arguments.
"""
