"""pocketmq.client.delivery

concurrent_delivery.py  Pulled messages to a concurrent listener
concurrent_results.py   After a concurrent listener
listeners.py            Calling a user's listener
ordered_delivery.py     Pulled messages to an ordered listener
ordered_results.py      After an ordered listener
retry_message.py        A failed message sent to the group's retry topic as an ordinary message
send_back.py            A message the listener failed on goes back to the broker, which delivers it ag
statistics.py           Rates of a consumer, by topic
"""
