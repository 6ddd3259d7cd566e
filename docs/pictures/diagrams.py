"""Drawings of the documents: boxes and arrows, and bars of measured figures, as SVG.

Each function returns one picture. It has a light ground of its own, so that it can be read on a dark page too.
"""

import json
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"
RESULTS = BENCH / "results.jsonl"
SCALE = BENCH / "scale.json"
INK, GROUND, PAPER, BLUE, GREEN, RED, GREY = (
    "#1f2430",
    "#f6f7fb",
    "#ffffff",
    "#3f51b5",
    "#2e7d32",
    "#c62828",
    "#8a90a0",
)


class Drawing:
    """An SVG that grows by boxes, arrows and texts; positions and sizes are pixels."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'font-family="system-ui, sans-serif" font-size="14" fill="{INK}">',
            f"<title>{escape(title)}</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{INK}"/></marker></defs>',
            f'<rect width="{width}" height="{height}" rx="10" fill="{GROUND}"/>',
        ]

    def text(
        self, x: float, y: float, text: str, *, color: str = INK, anchor: str = "start", size: int = 14
    ) -> None:
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" fill="{color}">{escape(text)}</text>'
        )

    def box(self, x: float, y: float, width: float, height: float, *lines: str, color: str = BLUE) -> None:
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{PAPER}" '
            f'stroke="{color}" stroke-width="1.5"/>'
        )
        top = y + height / 2 - (len(lines) - 1) * 9 + 5
        for number, line in enumerate(lines):
            middle = x + width / 2
            small = number > 0
            self.text(
                middle,
                top + number * 18,
                line,
                anchor="middle",
                color=GREY if small else INK,
                size=12 if small else 14,
            )

    def arrow(self, x1: float, y1: float, x2: float, y2: float, label: str = "", *, above: float = 6) -> None:
        self._parts.append(
            f'<path d="M{x1:g} {y1:g} L{x2:g} {y2:g}" stroke="{INK}" stroke-width="1.3" fill="none" '
            'marker-end="url(#tip)"/>'
        )
        if label:
            self.text((x1 + x2) / 2, (y1 + y2) / 2 - above, label, anchor="middle", size=12)

    def bar(self, x: float, y: float, width: float, height: float, color: str) -> None:
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height:g}" rx="2" fill="{color}"/>'
        )

    def line(self, points: Sequence[tuple[float, float]], color: str, *, dashes: str = "") -> None:
        way = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._parts.append(f'<path d="M{way}" stroke="{color}" stroke-width="1.8" fill="none"{dashed}/>')

    def __str__(self) -> str:
        return "\n".join((*self._parts, "</svg>")) + "\n"


def puzzle() -> str:
    """Where a group with CONSUME_FROM_LAST_OFFSET starts, and why."""
    drawing = Drawing(760, 330, "Where a new group starts")
    drawing.box(20, 30, 210, 56, "new consumer", "from LAST: new messages only")
    drawing.box(540, 30, 200, 56, "broker", "has no offset of the group")
    drawing.arrow(232, 48, 538, 48, "1. which offset has my group? (14)")
    for index in range(8):
        drawing.box(100 + index * 70, 150, 60, 34, str(index), color=GREEN if index == 0 else GREY)
    drawing.text(100, 138, "the queue: message 0 still exists", size=12)
    drawing.arrow(130, 250, 130, 190)
    drawing.box(
        20,
        252,
        330,
        56,
        "message 0 is in memory: the answer is 0",
        "the group reads the whole queue",
        color=RED,
    )
    drawing.arrow(655, 250, 655, 190)
    drawing.box(
        410,
        252,
        330,
        56,
        "message 0 is cold or deleted: “not found”",
        "the group starts at the end",
        color=GREEN,
    )
    drawing.arrow(538, 72, 232, 72, "2. an offset, or “not found” (22)", above=-18)
    return str(drawing)


def path() -> str:
    """The way of a message."""
    drawing = Drawing(820, 330, "The path of a message")
    drawing.box(20, 140, 120, 50, "producer")
    drawing.box(320, 20, 180, 44, "name server", "topic: brokers, queues")
    drawing.arrow(100, 138, 330, 66, "1. route?", above=12)
    drawing.arrow(142, 158, 258, 158, "2. send")
    drawing.arrow(258, 182, 142, 182, "5. stored", above=-18)
    drawing.box(260, 100, 300, 205, "", color=BLUE)
    drawing.text(275, 122, "broker", size=14)
    drawing.box(280, 136, 260, 40, "3. check", "topic, permission, size", color=GREY)
    drawing.box(280, 188, 260, 44, "4. commit log", "one record of every message", color=GREEN)
    drawing.box(280, 250, 122, 44, "queue", "20 bytes each", color=GREEN)
    drawing.box(418, 250, 122, 44, "index", "by key", color=GREEN)
    drawing.arrow(410, 177, 410, 187)
    drawing.arrow(341, 233, 341, 249)
    drawing.arrow(479, 233, 479, 249)
    drawing.box(690, 140, 110, 50, "consumer", "a group")
    drawing.arrow(688, 158, 562, 158, "6. pull")
    drawing.arrow(562, 182, 688, 182, "messages", above=-18)
    drawing.arrow(688, 230, 562, 230, "7. offset, every 5 s", above=-18)
    drawing.arrow(688, 262, 562, 262, "failed: send back", above=-18)
    drawing.arrow(500, 46, 720, 138, "1. route?", above=10)
    return str(drawing)


def parts() -> str:
    """What runs in the process, and who connects to it."""
    drawing = Drawing(820, 330, "The parts of a PocketMQ process")
    clients = (
        ("clients 4.x and 5.x", "Java, C++, Go, JavaScript, Python"),
        ("gRPC clients", "Java, Go, Node, Python, Rust"),
        ("mqadmin, pocketmq", ""),
        ("browser, curl, Prometheus", ""),
    )
    for number, (name, languages) in enumerate(clients):
        drawing.box(20, 30 + number * 72, 220, 52, name, *([languages] if languages else []), color=GREY)
    drawing.box(330, 20, 250, 290, "", color=BLUE)
    drawing.text(345, 42, "one process, one event loop", size=13)
    ports = (
        ("name server", "9876"),
        ("broker", "10911"),
        ("gRPC", "--grpc-port"),
        ("HTTP and the page", "--admin-port"),
    )
    for number, (name, port) in enumerate(ports):
        drawing.box(350, 54 + number * 62, 210, 48, name, port)
    drawing.arrow(242, 50, 348, 72)
    drawing.arrow(242, 62, 348, 132)
    drawing.arrow(242, 128, 348, 200)
    drawing.arrow(242, 196, 348, 146)
    drawing.arrow(242, 270, 348, 264)
    drawing.box(660, 54, 140, 58, "store", "official files", color=GREEN)
    drawing.box(660, 150, 140, 58, "tables, Spark", "read the files", color=GREEN)
    drawing.box(660, 246, 140, 58, "test companion", "faults, time, verdicts", color=RED)
    drawing.arrow(582, 84, 658, 84)
    drawing.arrow(730, 148, 730, 114)
    drawing.arrow(658, 275, 582, 275)
    return str(drawing)


SPEEDS = (
    "sync send, 64 threads, 128 B",
    "sync send, 1 thread, 128 B",
    "own properties: sync send, 64 threads, 128 B",
    "batch of 16, 64 threads, 128 B",
    "backlog drain, push consumer",
    "transactions, 32 threads, 128 B",
)
SIDES = (("official 4.9", GREY), ("official 5.5", INK), ("ours", BLUE))


def speed() -> str:
    """The newest results of some loads: bars are shares of the fastest side of their load."""
    newest: dict[tuple[str, str], float] = {}
    for line in RESULTS.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        newest[one["row"], one["side"]] = one["per_second"]
    drawing = Drawing(760, 50 + 66 * len(SPEEDS), "Messages a second, beside official brokers")
    for number, (side, color) in enumerate(SIDES):
        drawing.bar(270 + number * 130, 14, 14, 14, color)
        drawing.text(290 + number * 130, 26, side, size=13)
    for number, load in enumerate(SPEEDS):
        top = 44 + number * 66
        own, _, words = load.rpartition(": ")
        words = f"{words.removesuffix(', 128 B')}, {own}" if own else words
        drawing.text(250, top + 32, words, anchor="end", size=13)
        most = max(newest[load, side] for side, _ in SIDES)
        for index, (side, color) in enumerate(SIDES):
            rate = newest[load, side]
            drawing.bar(270, top + index * 18, 380 * rate / most, 14, color)
            drawing.text(278 + 380 * rate / most, top + 12 + index * 18, f"{rate:,.0f}/s", size=12)
    return str(drawing)


SCALED = (
    ("a send, beside topics", BLUE),
    ("creating a topic, beside topics", GREEN),
    ("a commit, beside offsets", INK),
    ("a timed send, beside waiting ones", RED),
    ("a held pull and the arrival that ends it, beside held pulls", GREY),
)


def scale() -> str:
    """How costs grow: logarithmic axes, each row from 1 at its smallest size; dashed: as much as the size."""
    found: dict[str, list[tuple[int, float]]] = {}
    for one in json.loads(SCALE.read_text(encoding="utf-8"))["points"]:
        if one["side"] == "ours":
            found.setdefault(one["row"], []).append((one["size"], one["value"]))
    left, top, width, height, decades = 70, 30, 620, 260, 3
    drawing = Drawing(760, 470, "How costs grow with what others have stored")

    def at(times: float, growth: float) -> tuple[float, float]:
        x = left + width * math.log10(times) / decades
        return x, top + height * (1 - (math.log10(growth) + 0.5) / (decades + 0.5))

    for decade in range(decades + 1):
        x, _ = at(10.0**decade, 1)
        _, y = at(1, 10.0**decade)
        drawing.line([(left, y), (left + width, y)], "#dfe2ea")
        drawing.text(left - 8, y + 4, f"{10**decade:,}", anchor="end", size=12)
        drawing.text(x, top + height + 18, f"{10**decade:,}", anchor="middle", size=12)
    drawing.text(
        left + width / 2, top + height + 38, "times the smallest number of others", anchor="middle", size=12
    )
    drawing.text(left, top - 10, "times the cost", size=12)
    drawing.line([at(1, 1), at(10.0**decades, 10.0**decades)], GREY, dashes="5 4")
    for number, (row, color) in enumerate(SCALED):
        points = found[row]
        drawing.line([at(size / points[0][0], value / points[0][1]) for size, value in points], color)
        drawing.bar(left, top + height + 54 + number * 22, 14, 14, color)
        first, last = points[0], points[-1]
        text = f"{row}: {first[1]:,.0f} us at {first[0]:,}, {last[1]:,.0f} us at {last[0]:,}"
        drawing.text(left + 22, top + height + 66 + number * 22, text, size=13)
    return str(drawing)


DIAGRAMS = {"puzzle": puzzle, "path": path, "parts": parts, "speed": speed, "scale": scale}
