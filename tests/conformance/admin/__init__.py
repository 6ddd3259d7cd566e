"""mqadmin and `pocketmq admin`, command by command."""
