"""The asyncio server: name server and broker of one process.

Bottom up; a room that answers requests has them in files named `..._handlers`:

    errors.py           refusals, failed starts
    config/             broker.conf and namesrv.conf: keys, values, verdicts
    network/            sockets, TLS, from a frame to its handler, the journal
    filters/            which messages a subscription wants: tags, SQL92
    state/              what a broker is before it does anything: settings, store, tables, addresses
    name_server/        routes and key-value settings
    storing/            how a message is stored: property text, numbers, copies
    access/             who may send which request
    membership/         clients, consumer and producer groups, queue locks
    delayed/            delay levels and messages for an exact time
    first_position/     where a consumer group starts in a queue, and why
    transactions/       half messages, their end, and the check with producers
    pulling/            pull requests, answered or held
    cluster/            registration at name servers, master and slave
    pop/                messages given out one by one until they are acknowledged
    sending/            what a send must pass, how it is stored and answered
    broker.py           builds the parts of a broker, starts and stops them
    admin/              what mqadmin asks
    handler_modules.py  every module of handlers
    node.py             name server and broker, built, started and stopped
    process.py          event loop and signals
    serve_command.py    `pocketmq serve`; __main__.py: `python -m pocketmq.broker`
"""
