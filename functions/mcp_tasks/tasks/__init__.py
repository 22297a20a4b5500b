"""Tasks: what a task may do next (`state`), what it is (`task`), what it asks its client
(`questions`), and how the tasks table keeps it (`task_table`).

Nothing here knows the wire format: how a task looks to a client of one protocol revision or
another is decided in `server`.
"""
