"""Tests of the application: from an HTTP request through RocketMQ to the bill, and without waiting for luck."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from pocketmq.testing import RocketMQ

from bills import create_app


@pytest.fixture
def names(rocketmq: RocketMQ) -> tuple[str, str]:
    return rocketmq.topic("orders"), rocketmq.group("billing")


@pytest.fixture
def client(names: tuple[str, str]) -> Iterator[TestClient]:
    """The running application: its consumer is a member of the group, on its own event loop."""
    with TestClient(create_app(*names)) as client:
        yield client


def test_an_order_becomes_a_bill(rocketmq: RocketMQ, names: tuple[str, str], client: TestClient) -> None:
    assert client.post("/orders", params={"number": "17", "price": 30}).status_code == 202
    rocketmq.wait_consumed(*names)
    assert client.get("/bills/17").json() == 30
    assert client.get("/bills/18").status_code == 404


def test_an_order_that_is_delivered_twice_is_one_bill(
    rocketmq: RocketMQ, names: tuple[str, str], client: TestClient
) -> None:
    orders, _ = names
    for _ in range(2):
        rocketmq.send(orders, '{"number": "17", "price": 30}')
    rocketmq.wait_consumed(*names)
    assert client.get("/bills/17").json() == 30


def test_a_broker_that_refuses_makes_the_application_unavailable(
    rocketmq: RocketMQ, names: tuple[str, str], client: TestClient
) -> None:
    orders, _ = names
    rocketmq.faults.refuse(code="SEND_MESSAGE_V2", topic=orders, response="NO_PERMISSION", times=None)
    assert client.post("/orders", params={"number": "17", "price": 30}).status_code == 503
    assert rocketmq.messages(orders) == []
