"""Several name servers and brokers in one thread: `RocketMQCluster`.

cluster.py             the cluster: its members, its topics, its partitions
cluster_broker.py      one broker: stop, kill, start, hide, slow; its gRPC port
cluster_name_server.py one name server: stop, start
cluster_context.py     what all members share: thread, settings, addresses, partitions, time, request log, faults
cluster_port.py        the HTTP port
"""
