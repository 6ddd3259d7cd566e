"""pocketmq.protocol: bytes to values and back. No input or output, no clock, no event loop.

Bottom up:

    errors.py           what a bad peer or a bad value raises
    message/            a stored message: record layout, properties, tags, ids, batches, receipts
    languages.py        language codes and version numbers in command headers
    text/               JSON as fastjson writes it, Java properties files
    bodies/             the bodies of requests and replies
    wire/               frames, headers, response codes, how a request is declared
    requests/           every request, declared once
    journal_frames.py   our own file format for recorded requests and replies
    WIRE.md             the bytes, field by field
"""
