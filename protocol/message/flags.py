"""Bit fields of the protocol: message, pull, topic permission, topic system flag.

They are plain integers, not enum members, because every message tests them. Official classes: MessageSysFlag,
PullSysFlag, PermName, TopicSysFlag.
"""

# Message sysFlag (MessageSysFlag). The transaction type is a two-bit number, not two flags.
COMPRESSED = 0x1
MULTI_TAGS = 0x2
TRANSACTION_MASK = 0xC
TRANSACTION_NONE = 0x0
TRANSACTION_PREPARED = 0x4
TRANSACTION_COMMIT = 0x8
TRANSACTION_ROLLBACK = 0xC
BORN_HOST_IPV6 = 0x10
STORE_HOST_IPV6 = 0x20
HOSTS_IPV6 = BORN_HOST_IPV6 | STORE_HOST_IPV6
NEED_UNWRAP = 0x40
INNER_BATCH = 0x80

# Compression type inside the message sysFlag, meaningful together with COMPRESSED. 0 is the zlib of old clients.
COMPRESSION_MASK = 0x700
COMPRESSION_LZ4 = 0x100
COMPRESSION_ZSTD = 0x200
COMPRESSION_ZLIB = 0x300

# Pull request sysFlag (PullSysFlag).
PULL_COMMIT_OFFSET = 0x1
PULL_SUSPEND = 0x2
PULL_SUBSCRIPTION = 0x4
PULL_LITE_PULL_MESSAGE = 0x10

# Topic and queue permission (PermName).
PERM_INHERIT = 0x1
PERM_WRITE = 0x2
PERM_READ = 0x4

# Topic sysFlag (TopicSysFlag).
TOPIC_UNIT = 0x1
TOPIC_UNIT_SUB = 0x2


def transaction_type(sys_flag: int) -> int:
    """One of TRANSACTION_NONE, _PREPARED, _COMMIT, _ROLLBACK."""
    return sys_flag & TRANSACTION_MASK


def with_transaction_type(sys_flag: int, transaction: int) -> int:
    """`sys_flag` with its transaction bits replaced (MessageSysFlag.resetTransactionValue)."""
    return (sys_flag & ~TRANSACTION_MASK) | transaction


def is_queued(sys_flag: int) -> bool:
    """True if the record has a unit in its queue: ordinary and committed messages have, half messages and rollbacks
    have none."""
    return not sys_flag & TRANSACTION_PREPARED


def is_readable(perm: int) -> bool:
    return perm & PERM_READ != 0


def is_writeable(perm: int) -> bool:
    return perm & PERM_WRITE != 0


def is_inherited(perm: int) -> bool:
    return perm & PERM_INHERIT != 0


def perm_text(perm: int) -> str:
    """`RWX` with a dash for each missing letter (PermName.perm2String)."""
    return "".join(letter if perm & bit else "-" for letter, bit in (("R", 4), ("W", 2), ("X", 1)))
