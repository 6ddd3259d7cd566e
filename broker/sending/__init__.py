"""Stores what producers send, and what consumers send back.

sending.py          the part of a broker
decision.py         what the broker decides about sends of one kind
send_checks.py      refuses a send, with the remarks of the official broker
send_handlers.py    10, 310 and 320: the messages of sends, and how one decoded request is handled
sends.py            the sends of a pass: stored together, answered together
reply_form.py       the answers to sends as bytes with a few values put in
durable_answers.py  the answer, once disk, slaves and topic table are written
retry_handlers.py   36: messages a consumer sends back; dead letters
recall_handlers.py  370: timed messages that a producer takes back
reply_handlers.py   324 and 325: replies pushed to the asking client
"""
