"""How a change of a task reaches those who follow it, without anybody polling.

    table stream -> publish -> event bus -> queue -> deliver -> mailboxes -> subscriptions/listen

`changes` reads and writes what travels, `bus` puts it where any EventBridge rule finds it,
`mailboxes` keeps it for each listen, `order` passes it on in order and once, and `following` is
the listen itself, apart from the wire.
"""
