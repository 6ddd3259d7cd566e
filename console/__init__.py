"""pocketmq.console: the HTTP port of a running server: API, metrics and a page for the browser.

server.py             the port: starts, listens, stops
connections.py        what one connection may cost
app.py                the table of addresses, and what each request passes
guard.py              who may ask
answers.py            JSON, errors, and how parameters are read
pages.py              long lists in pages, and long work in turns
server_access.py      what the port shows: a node, its request log, its faults, its state
cluster_views.py      topics, groups, lag, first positions
assignment.py         which member holds which queue
message_views.py      messages looked up and sent
stand_in_views.py     faults, requests, virtual time, reset, snapshots
metrics.py            figures with RocketMQ 5's metric names
openapi.py            the description of all of it
page/                 the page: one HTML file, its style and its script in five parts

Nothing here is imported unless the port is on.
"""
