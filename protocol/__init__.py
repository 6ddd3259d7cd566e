"""The protocol: bytes to values and back. No input or output, no clock, no event loop.

Bottom up:

    errors.py           what a bad peer or a bad value raises
    languages.py        languages and version numbers in command headers
    message/            the stored message and the texts around it: properties, ids, names, receipts
    text/               JSON as fastjson writes it, Java properties
    bodies/             the bodies of requests and replies
    wire/               frames, headers, response codes, how a request is declared
    requests/           all requests, each declared once
    rpc_numbers.py      calls of gRPC clients by number
    journal_frames.py   our own file format for recorded requests and replies
    WIRE.md             the bytes, field by field; the table of bodies
"""
