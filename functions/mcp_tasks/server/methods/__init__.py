"""MCP's methods, one module for each page of the specification, in no revision's words."""
