"""Recalls that the client refuses without sending a request."""

import pytest
from pocketmq.client import ClientError, Producer, RequestRefused, ValidationFailed

from client_vectors import feature_vectors


async def test_invalid_recalls_are_refused(producer: Producer) -> None:
    ((handle,), _) = feature_vectors("handle")[0]
    assert handle is not None
    await producer.send("T", b"x")
    for topic in ("%RETRY%g", "%DLQ%g"):
        with pytest.raises(ClientError, match="topic is not supported"):
            await producer.recall(topic, handle)
    with pytest.raises(ClientError, match="recall handle is invalid"):
        await producer.recall("T", "nonsense")
    with pytest.raises(ValidationFailed):
        await producer.recall("not a topic", handle)
    with pytest.raises(RequestRefused):  # no broker has such a message
        await producer.recall("T", handle)
