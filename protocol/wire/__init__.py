"""pocketmq.protocol.wire

binary_header.py   The binary form of the command header (serialize type 1, `RocketMQSerializable
command.py         One remoting command
frame.py           Frames on a byte stream
ha_stream.py       The HA port's own protocol
json_header.py     The JSON form of the command header (serialize type 0)
response_codes.py  Codes of replies
signatures.py      What a signature covers, and how it is made
schema.py          Declare a request or reply once, and turn it into header fields and back
"""
