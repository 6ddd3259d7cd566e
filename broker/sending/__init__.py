"""Stores what producers send, and what consumers send back.

sending.py          the part of a broker
send_handlers.py    10, 310 and 320: what happens to one message
plain_sends.py      the steps of a message that nothing reroutes
planned_sends.py    sends whose headers repeat: stored by a plan
send_plan.py        what was decided about the sends of one header
rerouted_plan.py    the same for half messages and messages with a time
rerouted_sends.py   those sends, stored by their plan
reply_template.py   the answer to a send as bytes with a few values put in
batches.py          the messages of one batch
planned_batches.py  batches whose headers repeat, stored by a plan
send_checks.py      refuses a send, with the remarks of the official broker
durable_answers.py  the answer, once disk, slaves and topic table are written
retry_handlers.py   36: messages a consumer sends back; dead letters
reply_handlers.py   324 and 325: replies pushed to the asking client
"""
