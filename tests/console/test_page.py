"""The page, by what a user does in a browser: tabs, fields and buttons by their names, and what the page shows then."""

import asyncio
from collections.abc import Generator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pocketmq.client import LitePullConsumer, MessageQueue, PushConsumer, TopicConfig
from pocketmq.console.server import Console
from pocketmq.testing import EmbeddedServer, RocketMQ
from pocketmq.testing.server.stand_in_views import StandIn

from frames_client import raw
from testing_acts import pull_words

from .browser import MISSING, Browser, browser, wait_until
from .conftest import Api

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"the page needs a browser, not on PATH: {', '.join(MISSING)}"),
]

TABS = ["Topics", "Groups", "Messages", "Requests", "Faults", "Clock", "Ledger"]
OVERFLOWING = """
return [...document.querySelectorAll('tbody tr')].filter((row) => [...row.querySelectorAll('th, td')].some((cell) => {
  const part = document.createRange();
  part.selectNodeContents(cell);
  return part.getBoundingClientRect().right > row.getBoundingClientRect().right + 1;
})).map((row) => row.textContent)"""
RIGHT, END = "\ue014", "\ue010"
HELD_BY = "return [...document.querySelectorAll('[data-head=held_by]')].map((one) => one.textContent)"
RATES = "return [...document.querySelectorAll('td[data-head=\"per second\"]')].map((one) => Number(one.textContent))"


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as one:
        yield one


@pytest.fixture
def page(window: Browser, api: Api) -> Iterator[Browser]:
    window.look(1000)
    window.open("about:blank")
    window.open(f"http://{api.host}/")
    yield window
    window.open("about:blank")
    assert window.complaints() == []


def test_seven_sections_are_opened_by_pointer_and_by_keyboard(page: Browser) -> None:
    assert (
        page.run("return [...document.querySelectorAll('[role=tab]')].map((one) => one.textContent)") == TABS
    )
    for name in TABS:
        page.tab(name)
        assert page.run("return document.querySelector('[aria-selected=true]').textContent") == name
    page.keys(RIGHT)
    assert page.run("return document.activeElement.textContent") == "Topics"
    page.keys(END)
    assert page.run("return document.activeElement.textContent") == "Ledger"
    page.run("location.hash = 'clock'")
    page.sees("The time of the server")


def test_a_topic_is_made_and_its_rate_is_seen(page: Browser, rocketmq: RocketMQ) -> None:
    page.sees("There is no topic yet")
    page.fill(name="orders", queues="many")
    page.press("Add")
    page.sees("queues: Expected `int | null`, got `str`", "allowed: int | null")
    page.fill(queues="2")
    page.press("Add")
    page.sees("1 topic", "0: 0–0, 1: 0–0")
    for number in range(30):
        rocketmq.send("orders", str(number))
    wait_until(lambda: (page.run(RATES)[0] or 0) > 0, "messages per second", page.text)
    text = page.sees("30", "0: 0–15, 1: 0–15")
    assert "must be" not in text


def test_a_fault_is_added_hit_and_removed(page: Browser, api: Api) -> None:
    api.post("/api/topics", {"name": "orders", "queues": 1})
    page.tab("Faults")
    page.sees("No rule")
    page.choose("effect", "refuse")
    page.fill(code="SEND", topic="orders", response="SYSTEM_BUSY", remark="try later", times="null")
    page.press("Add")
    page.sees("code must be the official name or the number of a request, got 'SEND'", "allowed values")
    page.fill(code="SEND_MESSAGE_V2")
    page.press("Add")
    page.sees("1 rule, 0 hits", "response=SYSTEM_BUSY", "times=always")
    page.tab("Topics")
    page.fill(topic="orders", text="hello")
    page.press("Send")
    page.sees("the broker refuses: SYSTEM_BUSY, try later")
    page.tab("Faults")
    page.sees("1 rule, 1 hit")
    page.press("Remove")
    page.sees("No rule")
    page.tab("Topics")
    page.press("Send")
    text = page.sees("stored in queue 0 at 0")
    assert "refuses" not in text


def test_odd_words_of_a_rule_are_given_as_json(page: Browser, api: Api) -> None:
    page.tab("Faults")
    page.choose("effect", "delay")
    page.fill(seconds="0.5", words="[1]")
    page.press("Add")
    page.sees("words must be a JSON object")
    page.fill(words='{"oneway": false, "may_stay_unused": true}')
    page.press("Add")
    page.sees("1 rule, 0 hits", "seconds=0.5")
    (rule,) = api.get("/api/faults")
    assert (rule["effect"], rule["seconds"], rule["oneway"], rule["may_stay_unused"]) == (
        ("delay", 0.5, False, True)
    )


def test_requests_appear_as_they_arrive(page: Browser, rocketmq: RocketMQ) -> None:
    rocketmq.topic("orders", queues=1)
    rocketmq.send("orders", "before")
    page.tab("Requests")
    page.fill(code="SEND_MESSAGE_V2")
    page.press("Search")
    page.sees("the newest 1 request", "SUCCESS")
    page.run("document.querySelector('td details').open = true")
    page.sees("producerGroup=test", "before")
    rocketmq.send("orders", "after")
    text = page.sees("the newest 2 requests")
    assert "GET_ROUTEINFO_BY_TOPIC" not in text
    page.fill(response="NICE")
    page.press("Search")
    page.sees("response must be the official name or the number of a reply, got 'NICE'")


async def test_lag_falls_and_members_and_queues_are_seen(
    page: Browser, server: EmbeddedServer, rocketmq: RocketMQ
) -> None:
    rocketmq.topic("orders", queues=1)
    for number in range(5):
        rocketmq.send("orders", str(number))
    async with LitePullConsumer("billing", namesrv_addr=server.namesrv_addr, auto_commit=False) as consumer:
        consumer.subscribe("orders")
        read: list[object] = []
        while len(read) < 5:
            read += await consumer.poll(1000)
        queue = MessageQueue("orders", "broker-a", 0)
        await consumer.commit({queue: 1})
        page.tab("Groups")
        page.sees("billing: 1 member, lag 4")
        await consumer.commit({queue: 5})
        page.sees("billing: 1 member, lag 0")


def test_the_page_says_where_a_new_group_starts_and_why(page: Browser, rocketmq: RocketMQ) -> None:
    rocketmq.topic("orders", queues=2)
    page.tab("Groups")
    page.fill(group="newcomer", topic="order")
    page.press("Search")
    page.sees("there is no topic order")
    page.fill(topic="orders")
    page.press("Search")
    text = page.sees("newcomer starts orders in 2 queues")
    assert "in memory" in text or "B6" in text


def test_messages_are_searched_and_shown_as_text_json_and_hex(page: Browser, rocketmq: RocketMQ) -> None:
    rocketmq.topic("orders", queues=1)
    rocketmq.send("orders", '{"id":17}', keys="k17")
    rocketmq.send("orders", b"\xff\x00hi")
    page.tab("Messages")
    page.fill(topic="orders")
    page.press("Search")
    page.sees("2 messages", '{"id":17}', "no text in UTF-8", "ff 00 68 69")
    page.fill(key="k17")
    page.press("Search")
    text = page.sees("1 message", '{"id":17}')
    assert "ff 00 68 69" not in text
    page.run("document.getElementById('kind-JSON').click()")
    page.sees('{\n  "id": 17\n}')
    page.run("document.getElementById('kind-hex').click()")
    page.sees('7b 22 69 64 22 3a 31 37  {"id":17')
    page.fill(key="", to_ms="2001-01-01 12:00")
    page.press("Search")
    page.sees("No message is found")
    page.fill(to_ms="yesterday")
    page.press("Search")
    page.sees("to_ms must be a whole number", "'yesterday'")


HOLD_BACK = """
const fetched = window.fetch;
let release;
const released = new Promise((done) => { release = done; });
window.held = 0;
window.late = 0;
window.release = release;
window.fetch = async (path, ...rest) => {
  const answer = await fetched(path, ...rest);
  if (path.startsWith("/api/topics") && !path.includes("filter")) {
    window.held += 1;
    await released;
    setTimeout(() => { window.late += 1; }, 100);
  }
  return answer;
};
"""


def test_an_answer_that_comes_late_does_not_replace_that_of_a_later_question(
    page: Browser, server: EmbeddedServer
) -> None:
    topics = server.node.broker.topics
    server.call(lambda: [topics.update(TopicConfig(topic_name=name)) for name in ("one", "two")])
    page.sees("2 topics")
    page.run(HOLD_BACK)
    wait_until(lambda: page.run("return window.held"), "asked without a filter", page.text)
    page.fill(filter="one")
    page.sees("1 topic\n")
    page.run("window.release()")
    wait_until(lambda: page.run("return window.late"), "got the answer to it", page.text)
    assert "two" not in page.run("return document.querySelector('tbody').innerText")


def test_a_name_is_found_among_many_and_the_forms_stay_where_they_are(
    page: Browser, server: EmbeddedServer, api: Api
) -> None:
    topics = server.node.broker.topics
    names = [f"topic-{number:03}" for number in range(500)]
    server.call(lambda: [topics.update(TopicConfig(topic_name=name)) for name in names])
    page.sees("500 topics")
    top = "return document.querySelector('form button').getBoundingClientRect().top"
    assert page.run(top) < 600
    page.fill(filter="-123")
    text = page.sees("1 topic\n", "topic-123")
    assert "topic-124" not in text
    page.fill(filter="none")
    page.sees("No topic has that in its name")
    assert [one["name"] for one in api.get("/api/topics?filter=9&limit=3")] == [
        "topic-009", "topic-019", "topic-029",
    ]  # fmt: skip


def test_blanks_of_a_body_are_kept_and_its_numbers_are_exact(page: Browser, rocketmq: RocketMQ) -> None:
    rocketmq.topic("orders", queues=1)
    body = ' {"id": 12345678901234567890, "rate": 1.10, "none": [], "text": "a, {b}: \\" c"} '
    page.fill(topic="orders", text=body)
    page.press("Send")
    page.sees("stored in queue 0 at 0")
    assert [message.text for message in rocketmq.messages("orders")] == [body]
    page.tab("Messages")
    page.fill(topic="orders")
    page.press("Search")
    page.sees("1 message")
    page.run("document.getElementById('kind-JSON').click()")
    page.sees(
        '{\n  "id": 12345678901234567890,\n  "rate": 1.10,\n  "none": [],\n  "text": "a, {b}: \\" c"\n}'
    )


def test_the_ledger_is_filled_when_it_is_opened(
    page: Browser, server: EmbeddedServer, rocketmq: RocketMQ
) -> None:
    rocketmq.topic("orders", queues=1)
    rocketmq.send("orders", "one")
    with raw(server.broker_addr) as client:
        client.ask(11, topic="orders", **pull_words(0, group="billing", most=1))
    page.tab("Ledger")
    page.sees("clean", "orders · billing")


def test_a_real_clock_and_a_missing_ledger_say_so(page: Browser, api: Api) -> None:
    page.tab("Clock")
    page.sees("not virtual", "start the server with --virtual-time to move it")
    disabled = "return [...document.querySelectorAll('form button')].map((one) => one.disabled)"
    wait_until(lambda: page.run(disabled) == [True, True], "time cannot be moved", page.text)
    page.tab("Ledger")
    status, answer = api.ask("GET", "/api/ledger")
    page.sees(answer["error"] if status == 409 else "Nothing")


class PlantedLedger:
    """Knows one verdict, with one finding."""

    def each_judged(
        self, topic: str | None, group: str | None, after: tuple[str, str]
    ) -> Iterator[Generator[None, None, Any]]:
        proof = [{"id": 41, "code": "PULL_MESSAGE", "client_id": "c1", "response": "SUCCESS"}]
        finding = {"message_id": "7F00AA", "queue_id": 3, "requests": proof}
        clean: dict[str, list[object]] = {
            key: [] for key in ("lost", "unread", "out_of_order", "offset_moved_back")
        }
        verdict = {"topic": topic, "group": group, **clean, "duplicated": [finding], "forgotten": 2}

        def steps() -> Generator[None, None, Any]:
            yield
            return SimpleNamespace(as_json=lambda: verdict)

        yield steps()


def test_a_verdict_shows_its_findings_and_their_proof(window: Browser) -> None:
    with EmbeddedServer() as server:
        access = server.call(StandIn, lambda: server.node, server.watched)
        access.ledger = PlantedLedger()  # type: ignore[assignment]
        console = Console(access)
        url = server.run(console.start("127.0.0.1", 0))
        window.open(f"{url}/#ledger")
        window.fill(topic="orders", group="billing")
        window.press("Search")
        window.sees("1 verdict with findings", "orders · billing", "2 facts were too old")
        window.run("document.querySelector('details').open = true")
        window.sees("7F00AA", "queue_id: 3", "request 41 PULL_MESSAGE c1 SUCCESS")
        window.open("about:blank")
        server.run(console.stop())


def test_virtual_time_is_moved(window: Browser) -> None:
    with EmbeddedServer(admin_port=0, virtual_time=True) as server:
        rocketmq = RocketMQ(server)
        rocketmq.topic("later", queues=1)
        rocketmq.send("later", "in two hours", delay_level=18)
        window.look(1000)
        window.open(f"{server.admin_url}/#clock")
        window.sees("virtual: it stands still")
        window.fill(by="soon")
        window.press("Advance")
        window.sees("'soon'", "1d2h30m5s100ms")
        window.fill(by="2h")
        window.press("Advance")
        window.sees("moved by 7200 s")
        assert [message.text for message in rocketmq.messages("later")] == ["in two hours"]
        window.open("about:blank")


@pytest.mark.parametrize(("width", "dark"), [(360, False), (360, True), (390, False), (820, False)])
def test_nothing_is_wider_than_the_window(
    page: Browser, server: EmbeddedServer, rocketmq: RocketMQ, width: int, dark: bool
) -> None:
    long_name = "a-topic-with-a-name-that-is-rather-long-as-names-of-companies-are"
    rocketmq.topic(long_name, queues=8)
    rocketmq.send(long_name, "x" * 500)
    with raw(server.broker_addr) as client:
        client.ask(38, consumerGroup="none")  # the longest name of a request that is seen often
    page.look(width, dark=dark)
    page.sees("1 topic")
    page.press("Look")
    page.sees("1 message")
    for name in TABS:
        page.tab(name)
        whole, seen = page.run(
            "const {scrollWidth: w, clientWidth: s} = document.documentElement; return [w, s]"
        )
        assert (name, whole) == (name, seen)
        if name == "Requests":
            page.sees("GET_CONSUMER_LIST_BY_GROUP")
        assert page.run(OVERFLOWING) == [], name
    ground = page.run("return getComputedStyle(document.body).backgroundColor")
    assert (int(ground[4:].split(",")[0]) < 128) is dark


def test_every_control_and_table_has_a_name(page: Browser, rocketmq: RocketMQ) -> None:
    rocketmq.topic("orders", queues=1)
    for name in TABS:
        page.tab(name)
        nameless = page.run("""
            const named = (one) => one.labels?.length || one.textContent.trim() || one.caption;
            return [...document.querySelectorAll('input, select, textarea, button, table')]
                .filter((one) => !named(one)).map((one) => one.outerHTML)""")
        assert nameless == []
        heads = page.run("return [...document.querySelectorAll('th')].filter((one) => !one.scope).length")
        assert heads == 0
        assert page.run("return document.querySelectorAll('[role=status], [role=alert]').length") > 0


async def test_a_push_consumer_says_which_queues_it_holds(
    page: Browser, server: EmbeddedServer, rocketmq: RocketMQ
) -> None:
    rocketmq.topic("orders", queues=2)
    async with PushConsumer("billing", namesrv_addr=server.namesrv_addr) as consumer:
        consumer.subscribe("orders")
        await rocketmq.aio.wait_members("billing", 1)
        (member,) = rocketmq.members("billing")
        page.tab("Groups")
        await asyncio.to_thread(page.sees, "billing: 1 member, lag 0", "held_by")
        await asyncio.to_thread(
            wait_until,
            lambda: page.run(HELD_BY)[-2:] == [member.client_id] * 2,
            "both queues of the member",
            page.text,
        )
