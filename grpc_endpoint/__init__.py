"""pocketmq.grpc_endpoint: the port for RocketMQ 5 clients, which speak gRPC. Loaded only when the port is on.

    hpack/       compressed header lists
    messages/    the messages of the service, by protobuf
    http2/       HTTP/2: from the bytes of a socket to messages of calls
    calls/       one call: its handler, its refusals
    conversion/  messages and names, between the service's form and the store's
    clients/     the clients: who they are, what they may do, what they announced
    producing/   routes, sends, transactions, recalls
    consuming/   receive, acknowledge, renew, dead letters
    endpoint.py  builds all of it for one broker, with the handler of each rpc

The handlers stand in front of the same parts of the broker as the remoting handlers do: the topics, groups, messages
and locks are the same. Mirrors the official proxy (`rocketmq-proxy`) in its LOCAL mode.
"""
