"""pocketmq.protocol.text

fastjson.py         JSON as the official programs write and read it (fastjson), both ways
java_properties.py  Java properties text, as broker.conf and the bodies of configuration requests
json_reader.py      The tolerant reader behind `fastjson.py`
"""
