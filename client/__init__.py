"""pocketmq.client: asyncio producers and consumers that behave as the official Java ones.

What a user imports: `Producer`, `PushConsumer`, `LitePullConsumer`, `PullConsumer`, `TransactionProducer`, `Requester`,
each from its file; `settings.py` has every setting with its default. In reading order:

    clock.py                 durations                    errors.py           what a caller does about it
    rpc_hooks.py             looking at requests          acl.py              signing them
    connection.py            one TCP connection           connections.py      one for each address
    tls.py                   certificates                 address_server.py   where name servers are
    routes.py                which broker has a topic     broker_addresses.py  where the brokers are
    message.py               Message, MessageExt          namespaces.py       names with something before them
    settings.py              all settings                 setting_checks.py    what is wrong with one
    not_settings.py          what official setters became  options.py          settings as arguments
    validators.py            names and messages           groups.py            what an instance asks
    client_config.py         settings to an instance
    instance.py              what facades share           heartbeats.py        who we are, told to brokers
    broker_pushes.py         what brokers ask of us       facade.py            how clients start and end
    callbacks.py             what a user gives to call
    hooks.py                 a user who looks on          trace_records.py     traces as text
    trace_hooks.py           what makes them              trace.py             what sends them

    outgoing.py              a message ready to leave
    sending.py               one message, its attempts    send_retry.py        which failure is tried again
    send_hooks.py            told of attempts             consume_hooks.py     told of listener calls
    queue_choice.py          which queue                  fault_tolerance.py   which brokers to leave alone
    batch_split.py           lists of messages            async_sends.py       sends as futures
    accumulator.py           sends put together           recall.py            timed messages taken back
    producer.py              the producer                 transaction.py       half messages
    request_reply.py         questions and answers

    rebalance_plan.py        what a round decides         rebalancer.py        the round
    allocation.py            who gets which queue         assignment.py        what the broker says
    first_position.py        where to begin               held_queues.py       what consumers hold alike
    process_queue.py         what is pulled, not done     flow_control.py      when to hold back
    offset_memory.py         offsets reached              offset_reports.py    telling the brokers
    offset_stores.py         where they are kept          offset_correction.py  after a pull
    pull_api.py              one pull, offset questions
    puller.py                the pull loop of a queue     push_queues.py       the queues of a push consumer
    pop_receipts.py          what popped messages carry   pop_api.py           pop, ack, have it later
    pop_queues.py            queues that are popped       pop_settlement.py    what becomes of the messages
    listeners.py             calling a listener           listener_returns.py  what it says
    concurrent_results.py    what follows from it         concurrent_delivery.py   in any order
    ordered_results.py       what follows from it         ordered_delivery.py  queue by queue
    queue_locks.py           locks at the broker          retry_message.py, send_back.py   failed messages
    statistics.py            rates                        consumer_report.py   what a consumer tells of itself
    push_consumer.py         the push consumer            message_stream.py    iterating over it
    lite_pull_queues.py      queues read ahead            lite_pull_consumer.py   the lite pull consumer
    pull_consumer.py         a queue read by offset

    admin_calls.py           what admin calls stand on    admin_topics.py      topics, order configurations
    admin_groups.py          groups, who is online        admin_offsets.py     progress, resets
    admin_brokers.py         brokers, name servers        admin_messages.py    single messages
    admin_trace.py           traces read                  admin_security.py    users and rights
    admin.py                 the admin client
"""
