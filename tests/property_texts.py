"""Property texts as clients write them, and others."""

from hypothesis import strategies as st

NAMES = st.sampled_from(
    [*b"KEYS TAGS UNIQ_KEY KEY WAIT DELAY AaAa BBBB AaBB \xc3\xbc \xf0\x9f\x98\x80".split(), b""]
)
VALUES = st.one_of(
    st.text(max_size=6).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=4),
    st.sampled_from([b"", b" ", b"a b", b" a  b "]),
    st.sampled_from(b"\xf0\x9f\x98\x80 \xed\xa0\x80 \xc0\x80 \xf4\x90\x80\x80 \xe2\x82".split()),
)
PAIRS = st.tuples(NAMES, VALUES).map(b"\x01".join)
TEXTS = st.builds(
    lambda pairs, end: b"\x02".join(pairs) + end,
    st.lists(PAIRS | VALUES, max_size=6),
    st.sampled_from([b"", b"\x02", b"\x01", b"\x02\x02"]),
)
MANY_PAIRS = st.integers(90, 100).map(
    lambda count: b"".join(b"%d\x01%d\x02" % (number * 7919, number) for number in range(count))
)
