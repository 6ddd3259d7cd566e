"""A 4.9 broker that lets only one account read: its files and settings, and the keys as options of a source."""

from pathlib import Path

_RULES = """\
accounts:
  - accessKey: reader1
    secretKey: 12345678
    defaultTopicPerm: SUB
    defaultGroupPerm: SUB
"""
KEYS = {"rocketmq.accessKey": "reader1", "rocketmq.secretKey": "12345678", "rocketmq.tls.enable": "true"}


def only_reader(folder: Path) -> dict[str, object]:
    """The settings of a broker of that folder."""
    (folder / "conf").mkdir()
    (folder / "conf" / "plain_acl.yml").write_text(_RULES)
    return {"aclEnable": True, "emulate": "4.9", "rocketmqHome": str(folder)}
