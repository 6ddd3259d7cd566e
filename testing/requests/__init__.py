"""The request log: every request and reply of a server, in memory, to look at and to wait for.

values.py           words and numbers that a test gives, checked
logged_request.py   one request with its reply, decoded when somebody looks
matching.py         which requests are meant: by code, topic, group, client ...
request_log.py      the log of one or more servers, with its bounds; a watcher fills it
requests.py         the log as a test uses it: find, count, wait, follow
"""
