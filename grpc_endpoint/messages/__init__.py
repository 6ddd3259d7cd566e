"""The messages of the service, each declared once, with the names and field numbers of the official protocol files.

from pocketmq.grpc_endpoint import messages

messages.SendMessageRequest(messages=[messages.Message(topic=messages.Resource(name="T"), body=b"hi")])

proto.py         how a message is declared, and how protobuf gets to know it
enumerations.py  Code, which is what a reply says about its request, and the others
definition.py    what requests are made of: times, topics, queues, messages, settings
service.py       requests, replies, the rpcs
decoding.py      the bytes of a request -> its message, within limits
"""

from .definition import *  # noqa: F403
from .enumerations import *  # noqa: F403
from .service import *  # noqa: F403
