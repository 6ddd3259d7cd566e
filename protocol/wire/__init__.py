"""Frames and headers on a connection, and how a request is declared.

frame.py           cuts frames out of a byte stream, and writes them
command.py         one frame as a value
json_header.py     the JSON form of the header
binary_header.py   the binary form of the header
header_form.py     headers that differ in a few values, written from a form
response_codes.py  the codes of replies
schema.py          declares a request; turns it into header fields and back
signatures.py      what access control signs
ha_stream.py       the other protocol, between master and slave
"""
