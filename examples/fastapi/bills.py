"""A FastAPI application that consumes while it serves: bills of the orders that it has received.

    uvicorn bills:app

NAMESRV_ADDR is the address of the name server.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypedDict

from fastapi import FastAPI, HTTPException, Request
from pocketmq.client import ConsumeFromWhere, MessageExt, Producer, PushConsumer, SendFailed


class State(TypedDict):
    producer: Producer
    bills: dict[str, int]


def create_app(orders: str = "orders", group: str = "billing") -> FastAPI:
    """The application, with its own topic and group in a test."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[State]:
        bills: dict[str, int] = {}

        async def on_order(message: MessageExt) -> None:
            order = json.loads(message.body)
            bills[order["number"]] = order["price"]  # a second delivery writes the same bill again

        consumer = PushConsumer(
            group,
            on_order,
            subscription={orders: "*"},
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        async with Producer("bills") as producer, consumer:
            yield State(producer=producer, bills=bills)

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders", status_code=202)
    async def order(number: str, price: int, request: Request) -> None:
        body = json.dumps({"number": number, "price": price}).encode()
        try:
            await request.state.producer.send(orders, body, keys=number)
        except SendFailed as error:
            raise HTTPException(503, str(error)) from error

    @app.get("/bills/{number}")
    async def bill(number: str, request: Request) -> int:
        price: int | None = request.state.bills.get(number)
        if price is None:
            raise HTTPException(404, f"there is no bill of order {number}")
        return price

    return app


app = create_app()
