"""Addresses as text."""

import pytest
from pocketmq.broker.config.addresses import host_and_port


def test_brackets_of_an_ipv6_address_are_not_part_of_the_host() -> None:
    assert host_and_port("[::1]:10911") == ("::1", 10911)


@pytest.mark.parametrize(
    "text",
    [
        *("nowhere", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", ":9876"),
        *("a..b:9876", "x" * 64 + ":9876", "a:" + "9" * 5000),
    ],
)
def test_text_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must have the form host:port"):
        host_and_port(text)
