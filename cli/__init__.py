"""pocketmq.cli: the program `pocketmq`, one file a command.

    main.py             the list of commands, and what they have in common
    options.py          options that commands share     times.py            times as users write them
    cluster_names.py    names in a cluster, for lists and for TAB
    message_forms.py    messages as text
    completion.py  demo.py  exec.py  send.py  tail.py   the commands of these names
    looking/            topics, groups, lag, clients, explain: commands that change nothing
    store_command.py    store check, store show
    admin/              mqadmin's commands
    bench/              load, and how fast it was answered
    pipeline.py         Spark jobs; pipeline_demo.py, pipeline_prepare.py

`serve` is in `pocketmq.broker.serve_command`.
"""
