"""pocketmq.cli: the program `pocketmq`, one file a command.

main.py             the list of commands, and what they have in common
mistakes.py         exit codes; a user's mistake: one line, and which command a misspelt name may mean
times.py            times as users write them, and as they are printed
options.py          options that commands share
output.py           how commands print: a table for people, `--json` for programs, `--watch`
serve.py            one server, until a signal
exec.py             a program with a server of its own
server_options.py   the options that these two share
proxy.py            a bad network in front of a server
demo.py             a guided tour
inspect/            topics, groups, lag, clients, explain: commands that change nothing
messages/           send and tail
admin/              mqadmin's commands
behave.py           what a client program does while its brokers have trouble
bench/              load, and how fast it was answered
store_command.py    store check, store show
pipeline/           jobs over topics, stores and journals
completion.py       TAB in a shell
__main__.py         where the program begins
"""
