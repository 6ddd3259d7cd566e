"""Several name servers and brokers in one thread: `RocketMQCluster`.

cluster.py             the cluster: its members, its topics, its partitions
cluster_broker.py      one broker: stop, kill, start, hide, slow
cluster_name_server.py one name server: stop, start
cluster_context.py     what all members share: thread, addresses, time, request log, faults
cluster_port.py        the HTTP port
cluster_grpc.py        the gRPC port of one broker
partition.py           which members cannot reach one another
member_settings.py     the settings of each broker
slow_answers.py        holds back what a slow broker answers
held_port.py           keeps the port of a member that is stopped
"""
