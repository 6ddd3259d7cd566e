"""pocketmq.broker.access

access_control.py      Who may send which request
access_rules.py        What a request wants to do with which topic, group or cluster
address_patterns.py    Addresses that need no key, as plain_acl.yml of 4.9 writes them
authorization.py       May this subject do that to this resource? The rules of 5.x policies
plain_acl.py           Access keys of the 4.9 line
plain_acl_handlers.py  Access keys over the wire, 4.9 line
plain_acl_needs.py     What a request needs of an access key of the 4.9 line
signatures.py          Signatures of requests
user_handlers.py       Users and rights for administrators, 5.x
user_table.py          Users and their rights (5.x), kept in config/users.json and config/acls.json
    access_rules.tsv  which right each request wants of which field
"""
