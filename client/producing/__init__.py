"""pocketmq.client.producing

accumulator.py      Single sends put together into batches behind the user's back (`auto_batch`, 5
async_sends.py      Sends whose results come as futures
batch_split.py      A list of messages as one batch
fault_tolerance.py  Which brokers a producer leaves alone for a while, by how slowly they answered
detector.py        Asks brokers that failed whether they answer again
outgoing.py         A message ready to leave, and the header of the request that carries it
producer.py         Sending messages
queue_choice.py     Which queue a message goes to
request_reply.py    Ask and be answered through topics
send_hooks.py       What hooks are told of each attempt to send
send_retry.py       Whether a failed send is tried again, what the failure says about the broker,
sender.py           One message to one of its topic's queues
transaction.py      Messages that become visible only once a local transaction has succeeded
"""
