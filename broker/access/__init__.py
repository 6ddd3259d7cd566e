"""Decides who may send which request: users and rights of the 5.x line, access keys of the 4.9 line.

access_control.py      the part of a broker, the guard of the 5.x line, first users, how our own requests are signed
signatures.py          the content of a signed request, and its signature
access_rules.py        which rights a request needs; the table is access_rules.tsv
authorization.py       the rule that allows or denies: pure functions
user_table.py          users and rights, kept in JSON files
user_handlers.py       3001 to 3010: users and rights for administrators
plain_acl.py           the guard of the 4.9 line: access keys
plain_acl_file.py      the files with access keys: plain_acl.yml
plain_acl_needs.py     which permissions a request of the 4.9 line needs
plain_acl_handlers.py  50 to 53: access keys for administrators
address_patterns.py    address patterns of plain_acl.yml
"""
