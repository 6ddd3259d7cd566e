"""The asyncio server: a name server and a broker in one process.

Bottom up. The handlers of requests are in files named `..._handlers`:

    errors.py           refusals, failed starts
    bounded_cache.py    bounded caches, and what the log has said already
    config/             broker.conf and namesrv.conf: keys, values, verdicts
    tables/             topics, groups, offsets and the other JSON tables
    network/            sockets, TLS, from a frame to its handler, the journal
    filters/            which messages a subscription wants: tags, SQL92
    time/               what is done later, and long work in slices
    figures.py          messages and bytes by topic and group, times of appends
    state/              the state that all parts share: settings, store, tables, statistics
    name_server/        routes and key-value settings
    storing/            how a message is stored: property text, numbers, copies
    access/             access control: users, rights, access keys
    membership/         clients, consumer and producer groups, queue locks
    delayed/            delay levels and messages for an exact time
    first_position/     at which offset a consumer group starts, and why
    transactions/       half messages, their end, and the check with producers
    pulling/            pulls, answered at once or held
    cluster/            registration at name servers, master and slave
    pop/                pop consumption: messages that must be acknowledged one by one
    sending/            sends: checks, rerouting, answers
    broker.py           builds the parts of a broker, starts and stops them
    admin/              requests of administrators (mqadmin)
    handler_modules.py  every module of handlers
    node.py             builds, starts and stops name server and broker
    process.py          event loop and signals
    __main__.py         `python -m pocketmq.broker`, which is `pocketmq serve`
"""
