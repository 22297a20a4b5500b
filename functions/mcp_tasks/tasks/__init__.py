"""The task: what it may do next (`state`), what it is (`task`), what it asks (`inputs`), and where
it is kept (`rows`).

Nothing here knows the wire: how a task looks to a client of one protocol revision or another is
decided in `server`.
"""
