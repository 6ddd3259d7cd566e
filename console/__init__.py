"""pocketmq.console: the HTTP port of a running server: API, metrics and a page for the browser.

server.py             the port: starts, listens, stops
connections.py        what one connection may cost
app.py                what each request passes: the guard, the function of its address, errors
guard.py              who may ask
answers.py            addresses and what answers them: JSON, errors, how parameters and bodies are read
pages.py              long lists in pages, and long work in turns
server_access.py      what the port shows: a node
cluster_views.py      topics, groups, lag, first positions, and which member holds which queue
message_views.py      messages looked up and sent
metrics.py            figures with RocketMQ 5's metric names
values.py             what it answers and reads, as structs
broker_values.py      what a broker has as such structs
openapi.py            the description of all addresses
page/                 the page: one HTML file, its style and its script in five parts

Only `values.py` and `broker_values.py` are imported without the port.
"""
