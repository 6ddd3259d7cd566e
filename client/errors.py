"""Errors of the client: what its user does about them."""


class ClientError(Exception):
    """Root of everything this package raises. Raised itself for a wrong setting, name or argument."""


class RequestRefused(ClientError):
    """A server answered with a code other than success (official MQBrokerException)."""

    def __init__(self, code: int, remark: str, request_name: str) -> None:
        super().__init__(f"{request_name}: code {code}, {remark or 'no remark'}")
        self.code = code
        self.remark = remark


class NotReachable(ClientError):
    """No connection, or it ended: try again, or another server (official RemotingConnectException)."""


class CallTimeout(NotReachable):
    """No answer came in time; the request may have been carried out (official RemotingTimeoutException)."""


class UnreadableReply(NotReachable):
    """A server answered with something that cannot be read: as good as no answer, and what was asked may have been
    done (official RemotingCommandException)."""


class RouteNotFound(ClientError):
    """No name server knows a broker for the topic, or the broker has no master now."""


class NotOnline(ClientError):
    """A group has no members, or nothing consumed, where the call needs some (official CONSUMER_NOT_ONLINE)."""


class MessageNotFound(ClientError):
    """No broker of the topic has such a message (official NO_MESSAGE)."""


class SendFailed(ClientError):
    """No attempt to send stored the message (official MQClientException of DefaultMQProducerImpl).

    `code` is the broker's or one of the client's own (10001 and above, official ClientErrorCode); `__cause__` is the
    failure of the last attempt.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class RequestTimeout(ClientError):
    """A request was sent, but no reply came in time (official RequestTimeoutException, code 10006)."""


class ClientClosed(ClientError):
    """The producer or consumer is not started, or was shut down; or it belongs to another event loop."""
