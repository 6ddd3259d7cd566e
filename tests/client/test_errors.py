"""What a caller may rely on in the exceptions: one root, Python's own bases, `retriable`."""

import inspect
from collections.abc import Iterator

import pytest
from pocketmq.client import ClientError, errors
from pocketmq.protocol.wire.response_codes import ResponseCode


def exceptions() -> Iterator[type[ClientError]]:
    for _, found in inspect.getmembers(errors, inspect.isclass):
        if found.__module__ == errors.__name__ and issubclass(found, BaseException):
            yield found


def test_every_exception_has_one_root() -> None:
    assert [found.__name__ for found in exceptions() if not issubclass(found, ClientError)] == []


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("CallTimeout", TimeoutError),
        ("SendTimedOut", TimeoutError),
        ("RequestTimeout", TimeoutError),
        ("NotReachable", ConnectionError),
        ("CallTimeout", ConnectionError),
        ("UnreadableReply", ConnectionError),
        ("InvalidArgument", ValueError),
        ("InvalidSetting", ValueError),
        ("ValidationFailed", ValueError),
    ],
)
def test_exceptions_have_pythons_usual_bases(name: str, base: type[Exception]) -> None:
    assert issubclass(getattr(errors, name), base)


@pytest.mark.parametrize(
    ("error", "retriable"),
    [
        (errors.NotReachable("gone"), True),
        (errors.CallTimeout("late"), True),
        (errors.RouteNotFound("none"), True),
        (errors.RequestRefused(ResponseCode.SYSTEM_BUSY, "", "SEND_MESSAGE"), True),
        (errors.RequestRefused(ResponseCode.NO_PERMISSION, "", "SEND_MESSAGE"), False),
        (errors.InvalidSetting("wrong"), False),
        (errors.ValidationFailed("wrong"), False),
        (errors.ClientClosed("closed"), False),
        (errors.SendFailed(-1, "failed"), True),
        (errors.SendFailed(16, "failed", retriable=False), False),
    ],
)
def test_retriable_says_whether_the_same_call_may_succeed_later(error: ClientError, retriable: bool) -> None:
    assert error.retriable is retriable


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (errors.RequestRefused(16, "not here", "PULL"), "PULL: code 16 NO_PERMISSION, not here"),
        (errors.RequestRefused(9999, "", "PULL"), "PULL: code 9999, no remark"),
        (errors.SendFailed(10005, "failed"), "failed (code 10005 no route)"),
        (errors.SendFailed(16, "PULL: code 16 NO_PERMISSION, no"), "PULL: code 16 NO_PERMISSION, no"),
        (errors.SendFailed(-1, "failed"), "failed"),
    ],
)
def test_a_text_says_the_code_and_its_meaning(error: ClientError, text: str) -> None:
    assert str(error) == text


def test_texts_of_exceptions_with_a_builtin_base_are_kept() -> None:
    assert str(errors.SendTimedOut(10002, "out of time")) == "out of time (code 10002 no answer in time)"
    assert str(errors.NotReachable("cannot connect")) == "cannot connect"
