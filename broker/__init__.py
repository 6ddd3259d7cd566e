"""The asyncio server: name server and broker of one process.

Reading order:

    serve_command.py        `pocketmq serve`: options         __main__.py          `python -m pocketmq.broker`
    serving.py              event loop, signals               node.py              builds, starts, stops the parts
    served.py               every module of handlers
    services.py             the parts of a broker, the first argument of each handler
    config.py               the keys honoured, typed          config_loading.py    broker.conf and `--set` to values
    config_keys.py          every key and its verdict, from official_keys.tsv
    table_settings.py       what the tables of topics and groups see of it
    errors.py               refusals, failed starts, silent peers
    store_owner.py          whose store it is, asked before it is opened

    server.py               listens, limits, ends             connection.py        one socket, both directions
    dispatch.py             request code to handler           journal.py           what was asked and answered, recorded

    send_handlers.py        10, 310, 320                      send_checks.py       what a send must pass
    stored_properties.py    property text as stored           retry_handlers.py    36: again, or to the dead letters
    delayed_messages.py     the delay levels                  message_copies.py     a stored record stored anew
    timed_sends.py          messages for an exact time        timed_messages.py     noting them, and their timer
    timed_delivery.py       delivering them                   timer_handlers.py     60, 61, 370
    half_messages.py        transactions: half, op, commit    transaction_check.py  asking producers again
    transaction_handlers.py 37, 323                           reply_handlers.py     324, 325: replies to requests
    pull_handlers.py        11, 361                           pull_waiters.py      pulls at the end of their queue
    message_filter.py       which messages a pull wants       offset_moved_events.py  4.9: what pulls asked for in vain
    sql_filter.py           SQL92 filters at work             sql_grammar.py        their language
    sql_operands.py         what its words do                 sql_numbers.py        numbers as Java reads them
    consumer_filters.py     which group filters by what       bloom_filter.py       its bits in consumerFilter.json
    pop_handlers.py         200050: handing out one by one    pop_reading.py        one pop at work
    pop_waiters.py          pops that wait                    popping.py            the parts of pop, put together
    pop_ack_handlers.py     200051, 200053, 200151            pop_look_handlers.py  200052, 200054, 200055
    revive_log.py           what is out, what is done         revive.py             what comes again
    ordered_pops.py         pop in order                      request_modes.py      who pops, who pulls
    assignment_handlers.py  400, 401, 402
    broadcast_offsets.py    where broadcasting consumers stand (5.x)
    offset_handlers.py      14, 15, 29 to 32, 30001           first_position.py    where a group starts: the rules
    explain.py              the rule that decided, in words
    client_handlers.py      34, 35, 38, 41, 42, 46            clients.py           who speaks on a connection
    consumer_groups.py      who consumes                      consumer_notices.py  40: the group changed
    producer_groups.py      who produces                      queue_locks.py       who reads a queue in order

    topic_handlers.py       17, 18, 21, 202, 215, ...         group_handlers.py    200 to 208, 225, 328, 352, 353
    progress_handlers.py    303, 317, 345: how far behind
    offset_admin_handlers.py  43, 45, 308, 314, 343           relay_handlers.py    222, 223, 307, 309: through clients
    query_handlers.py       12, 33, 321                       runtime_handlers.py  28, 315
    config_handlers.py      25, 26                            cleaning_handlers.py 306, 316, 329
    statistics.py           messages and bytes over time      put_times.py         how long storing took
    rhythm.py               what happens by itself, and how often

    safe_answers.py         when a send is answered           replication_handlers.py   906, 907, 908
    replication_master.py   the log to slaves                 replication_slave.py  the log from a master
    metadata_sync.py        topics, groups and offsets from a master
    access_control.py       who may send which request        signatures.py         what is signed, and how
    user_table.py           users and their rights (5.x)      authorization.py      who may do what with what
    access_rules.py         what a request wants to do, from access_rules.tsv
    user_handlers.py        3001 to 3010
    plain_acl.py            access keys of the 4.9 line       plain_acl_needs.py    what a request needs of one
    address_patterns.py     addresses that need none          plain_acl_handlers.py 50 to 53
    tls.py                  certificates, modes               tls_stream.py         the first byte, and TLS on a socket

    registration.py         this broker at its name servers   name_server_link.py  one of them
    name_server.py          the name server's state           route_table.py       brokers and topics it knows
    topic_routes.py         what it answers about topics      kv_config.py         its key-value settings
    name_server_handlers.py 100 to 106, 205, 206, ...         name_server_config_handlers.py  318, 319
"""
