"""How a change of a task reaches its subscribers without polling.

    table stream -> publish -> event bus -> queue -> deliver -> mailboxes -> subscriptions/listen

`changes` writes and reads a change as an event. `event_bus` publishes it, so that any EventBridge
rule can match it. `mailboxes` keeps it for each subscription. `subscription` reads its mailbox, and
puts the changes in order with `reorder_buffer`.
"""
