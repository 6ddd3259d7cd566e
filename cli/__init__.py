"""pocketmq.cli: the program `pocketmq`, one file a command.

    options.py          options that commands share     times.py            times as users write them
    message_forms.py    messages as text
    demo.py  exec.py  explain.py  send.py  tail.py      the commands of these names
    store_command.py    store check, store show
    admin/              mqadmin's commands
    bench/              load, and how fast it was answered
    pipeline.py         Spark jobs; pipeline_demo.py, pipeline_prepare.py
    main.py             the list of commands

`serve` is in `pocketmq.broker.serve_command`.
"""
