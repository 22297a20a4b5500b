"""Tools, resources and prompts: how authors declare them, and how a deployment finds them.

- Declarations: `function_tool` and `workflow_tool` (with `tool` and `step`), `resource`, `prompt`.
- What an author's function may do while it runs: `context`, `asking`.
- What goes in and comes out: `schema`, `results`, `content`, `completion`, `uri_template`.
- What a deployment offers: `catalogue`.
"""
