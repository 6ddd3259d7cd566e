"""pocketmq.client: asyncio producers and consumers that behave as the official Java ones.

Bottom up:

    errors.py, clock.py, tasks.py   what a caller does about a failure; clocks; background tasks
    values/             what a user gives and gets: messages, results, names
    settings/           every setting, its default, its check
    hooks/              callbacks, access keys, message traces
    connections/        TCP connections, TLS, name servers
    instance/           what the clients of one client id share
    offsets/            how far a group has come
    producing/          sending: one message, batches, transactions, request and reply
    rebalancing/        which queues are ours, where to begin, what is in them
    delivery/           messages to a listener, and what its answer does
    pulling/            consumers that ask for messages
    push/               consumers that are given messages
    admin/              administration
"""
