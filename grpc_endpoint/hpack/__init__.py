"""HPACK (RFC 7541): the compressed header lists of HTTP/2. Nothing of gRPC, no sockets.

    decoding.py      header blocks of one connection -> lists of headers, with the dynamic table
    static_table.py  the 61 headers that every table begins with
    huffman.py       texts in the Huffman code
    encoding.py      headers as literals: enough for our replies, which use neither table nor Huffman
    errors.py        the errors for blocks that break a rule

The library of this name is the other side in the tests, which compare both.
"""
