"""The errors for header blocks. Either ends its connection: the tables of the two sides may differ now."""


class MalformedBlock(ValueError):
    """The bytes break a rule of HPACK."""


class HeaderListTooLong(ValueError):
    """The headers are longer than the receiver allows."""
