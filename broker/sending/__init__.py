"""pocketmq.broker.sending

durable_answers.py  When a send is answered
reply_handlers.py   Replies to requests
retry_handlers.py   Messages a consumer could not handle
send_checks.py      What a send must pass before it is stored, in the official order and words
send_handlers.py    Storing what producers send
"""
