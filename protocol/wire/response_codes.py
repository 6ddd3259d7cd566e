"""Codes of replies. Mirrors `RemotingSysResponseCode` (0-4) and `ResponseCode`.

4.9 and 5.x gave three numbers to different names: 209, 210 and 211. The 5.x name is the member; the 4.9 one is an
alias, so `ResponseCode(209)` prints as POLLING_FULL whichever broker sent it. 29 and most numbers above 211 exist in
5.x only; a 4.9 program treats any unknown number as a failure.
"""

from enum import IntEnum


class ResponseCode(IntEnum):
    """The result of a request; 0 is success."""

    SUCCESS = 0
    """Done."""
    SYSTEM_ERROR = 1
    """An exception or a check without a code of its own; the remark has the reason."""
    SYSTEM_BUSY = 2
    """Flow control: too many waiting, or too long."""
    REQUEST_CODE_NOT_SUPPORTED = 3
    """No handler exists for the request code."""
    TRANSACTION_FAILED = 4
    """Brokers never send it."""

    FLUSH_DISK_TIMEOUT = 10
    """Stored, but not yet forced to disk."""
    SLAVE_NOT_AVAILABLE = 11
    """Stored, but no slave is close enough behind; also a request for masters that was sent to a slave."""
    FLUSH_SLAVE_TIMEOUT = 12
    """Stored, but no slave has confirmed in time."""
    MESSAGE_ILLEGAL = 13
    """The message is too large or malformed; also a wrong queue id in an acknowledgement."""
    SERVICE_NOT_AVAILABLE = 14
    """The store cannot be written: disk full, stopping, or not a master."""
    VERSION_NOT_SUPPORTED = 15
    """From older generations; brokers no longer send it."""
    NO_PERMISSION = 16
    """Permission bits, forbidden topics and groups, access control."""
    TOPIC_NOT_EXIST = 17
    """No such topic, or no route to it."""
    TOPIC_EXIST_ALREADY = 18
    """Brokers never send it."""
    PULL_NOT_FOUND = 19
    """No new message at that offset."""
    PULL_RETRY_IMMEDIATELY = 20
    """No message matches; continue at the next offset."""
    PULL_OFFSET_MOVED = 21
    """The offset is outside the queue; continue at the one in the reply."""
    QUERY_NOT_FOUND = 22
    """No such key, message or committed offset."""
    SUBSCRIPTION_PARSE_FAILED = 23
    """The filter expression cannot be read."""
    SUBSCRIPTION_NOT_EXIST = 24
    """The group did not subscribe to that topic."""
    SUBSCRIPTION_NOT_LATEST = 25
    """The broker has an older subscription than the caller."""
    SUBSCRIPTION_GROUP_NOT_EXIST = 26
    """No such consumer group."""
    FILTER_DATA_NOT_EXIST = 27
    """No compiled filter for that subscription."""
    FILTER_DATA_NOT_LATEST = 28
    """The compiled filter is older than the caller's subscription."""
    INVALID_PARAMETER = 29
    """A name, queue id or count is out of bounds (5.x; 4.9 answers SYSTEM_ERROR)."""

    TRANSACTION_SHOULD_COMMIT = 200
    """Brokers never send it."""
    TRANSACTION_SHOULD_ROLLBACK = 201
    """Brokers never send it."""
    TRANSACTION_STATE_UNKNOW = 202
    """Brokers never send it; the official spelling."""
    TRANSACTION_STATE_GROUP_WRONG = 203
    """Brokers never send it."""
    NO_BUYER_ID = 204
    """Brokers never send it; producers would try another broker."""
    NOT_IN_CURRENT_UNIT = 205
    """Brokers never send it; producers would try another broker."""
    CONSUMER_NOT_ONLINE = 206
    """No member of that group is connected."""
    CONSUME_MSG_TIMEOUT = 207
    """The broker asked a client for the caller, and the client did not answer in time."""
    NO_MESSAGE = 208
    """The acknowledged offset is outside the queue (5.x)."""
    POLLING_FULL = 209
    """Too many waiting pops (5.x)."""
    UPDATE_AND_CREATE_ACL_CONFIG_FAILED = 209
    """4.9: the access key could not be written."""
    POLLING_TIMEOUT = 210
    """No message to pop in the given time (5.x)."""
    DELETE_ACL_CONFIG_FAILED = 210
    """4.9: the access key could not be removed."""
    BROKER_NOT_EXIST = 211
    """No such broker in this container (5.x)."""
    UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED = 211
    """4.9: the address list could not be written."""
    BROKER_DISPATCH_NOT_COMPLETE = 212
    """The log is not yet fully dispatched to the queues (5.x)."""
    BROADCAST_CONSUMPTION = 213
    """The group broadcasts, so it has no progress here (5.x)."""
    FLOW_CONTROL = 215
    """Refused by a limit of a proxy or plug-in."""

    NOT_LEADER_FOR_QUEUE = 501
    """That queue of a static topic belongs to another broker (5.x)."""
    ILLEGAL_OPERATION = 604
    """Bad recall handle, transaction past its time, misuse of a lite group (5.x)."""
    GO_AWAY = 1500
    """This server is stopping: connect again and repeat (5.x)."""

    CONTROLLER_FENCED_MASTER_EPOCH = 2000
    """A newer master was elected."""
    CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH = 2001
    """Another request changed the set of replicas in sync."""
    CONTROLLER_INVALID_MASTER = 2002
    """The caller is not the master."""
    CONTROLLER_INVALID_REPLICAS = 2003
    """The set names an unknown broker."""
    CONTROLLER_MASTER_NOT_AVAILABLE = 2004
    """No master could be named or elected."""
    CONTROLLER_INVALID_REQUEST = 2005
    """The request is contradictory or incomplete."""
    CONTROLLER_BROKER_NOT_ALIVE = 2006
    """The broker has been silent."""
    CONTROLLER_NOT_LEADER = 2007
    """Another controller is the leader."""
    CONTROLLER_BROKER_METADATA_NOT_EXIST = 2008
    """The controller does not know the broker."""
    CONTROLLER_INVALID_CLEAN_BROKER_METADATA = 2009
    """A living broker is deleted only if the request says so."""
    CONTROLLER_BROKER_NEED_TO_BE_REGISTERED = 2010
    """The broker must register first."""
    CONTROLLER_MASTER_STILL_EXIST = 2011
    """The master is alive, so there is no election."""
    CONTROLLER_ELECT_MASTER_FAILED = 2012
    """The election failed."""
    CONTROLLER_ALTER_SYNC_STATE_SET_FAILED = 2013
    """The set of replicas in sync was not changed."""
    CONTROLLER_BROKER_ID_INVALID = 2014
    """The broker id is in use, or not the next one."""
    CONTROLLER_JRAFT_INTERNAL_ERROR = 2015
    """The controllers' own log failed."""
    CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS = 2016
    """No keep-alive of the broker is recorded."""
    LMQ_QUOTA_EXCEEDED = 2017
    """Too many light queues (5.5; before, SYSTEM_ERROR)."""
    LITE_SUBSCRIPTION_QUOTA_EXCEEDED = 2018
    """Too many lite subscriptions (5.5)."""

    USER_NOT_EXIST = 3001
    """No such user (5.x)."""
    POLICY_NOT_EXIST = 3002
    """No such policy (5.x)."""

    RPC_UNKNOWN = -1000
    """From the caller's own RPC client, never on the wire: an unknown failure."""
    RPC_ADDR_IS_NULL = -1002
    """As above: no address for that broker."""
    RPC_SEND_TO_CHANNEL_FAILED = -1004
    """As above: the request could not be written."""
    RPC_TIME_OUT = -1006
    """As above: no answer in time."""
