"""Bytes <-> values: the remoting protocol and the stored message. No sockets, no files, no clock.

Reading order:

    WIRE.md                 frame and header drawn; what replies carry; our deviations
    errors.py               what is wrong with a peer's bytes, and what to do about it
    command.py              a request or reply, whatever form it travelled in
    frame.py                cut a byte stream into commands, and back
    json_header.py          serialize type 0              binary_header.py     serialize type 1
    languages.py            who speaks, in which version

    schema.py               a request declared once: code, fields, reply
    send_requests.py        10, 310, 320, 36, ...         pull_requests.py     11, 361
    offset_requests.py      14, 15, 29 to 32, resets      membership_requests.py   34, 35, 38, locks
    group_requests.py       groups                        topic_requests.py    topics
    query_requests.py       12, 33, 321                   route_requests.py    the name server's
    client_requests.py      what a broker asks a client   admin_requests.py    settings and figures of a broker
    explain_requests.py     30001, our own                transaction_requests.py  37, 39
    pop_requests.py         POP                           lite_requests.py     light topics of 5.5
    replication_requests.py between master and slave      controller_requests.py   the official controller
    security_requests.py    users and rights              replication_stream.py   the HA port: the log itself
    response_codes.py       what a reply's code means

    body.py                 what all JSON bodies share
    bodies_route.py         routes, clusters, lists       bodies_registration.py   a broker's registration
    bodies_client.py        heartbeats, members, locks    bodies_client_state.py   what clients say of themselves
    bodies_offset.py        positions, statistics         bodies_broker.py     brokers, users, timers
    bodies_pop.py           acks, light topics            bodies_revive.py     what is out, what is done
    pop_receipts.py         receipts, as text
    topic_config.py, group_config.py, data_version.py     the values these bodies carry
    fastjson.py             JSON with the official quirks json_reader.py       the tolerant half of it
    java_properties.py      broker.conf and the bodies of settings

    record.py               the stored message, byte by byte
    properties.py           its property text             flags.py             its bits, and those of topics and pulls
    batch.py                many messages in one body     compression.py       zlib, LZ4, zstd
    message_id.py           the broker's id               unique_id.py         the producer's id
    message_queue.py        topic, broker, queue id       topics.py            names: reserved, built, refused
    journal_frames.py       recorded requests and answers
    tags.py                 the code consumers filter by  subscription.py      `TagA || TagB` to that code
"""
