"""Looking at a server without changing it, and waiting for what is to come.

stored_message.py    a message as the broker stores it
topic_views.py       what a topic holds, and what a group has not read
waiting.py           waiting until nothing is missing
"""
