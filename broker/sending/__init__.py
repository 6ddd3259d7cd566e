"""Stores what producers send.

sending.py          the part of a broker
send_handlers.py    10, 310 and the batch 320
send_checks.py      what a send must pass, in the official order and words
durable_answers.py  when a send is answered: disk, slaves, a new topic
retry_handlers.py   36: messages a consumer gives back; dead letters
reply_handlers.py   324 and 325: replies pushed to the asking client
"""
