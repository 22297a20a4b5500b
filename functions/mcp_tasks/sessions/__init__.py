"""What the server remembers of a session: what `initialize` could not put into its id.

A client of 2025-11-25 and earlier begins a session with `initialize`. Its id holds what the client
declared (`server/sessions.py`). `session_table` keeps what comes later: that the session has ended,
its log level, its subscriptions, and that its client has resumed a stream.
"""
