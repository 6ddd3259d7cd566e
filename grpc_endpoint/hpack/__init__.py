"""HPACK (RFC 7541): the compressed header lists of HTTP/2. Nothing of gRPC, no sockets.

    decoding.py   header blocks of one connection -> lists of headers, with the static and the dynamic table
    huffman.py    texts in the Huffman code
    encoding.py   headers as literals: enough for our replies, which use neither table nor Huffman

The library of this name is the other side in the tests, which compare both.
"""
