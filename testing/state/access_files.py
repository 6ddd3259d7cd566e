"""The files with access keys of a broker with aclEnable: read, and written back after a test changed them."""

from pathlib import Path

from pocketmq.broker.access.access import Access


def read_access_files(access: Access) -> dict[str, bytes]:
    """Path to content; empty without aclEnable. Raises OSError."""
    acl = access.plain_acl
    return {} if acl is None else {str(path): path.read_bytes() for path in acl.files() if path.exists()}


def restore_access_files(access: Access, files: dict[str, bytes]) -> None:
    """Write the files back that differ, delete those that are new. Raises OSError."""
    acl, now = access.plain_acl, read_access_files(access)
    if acl is None or now == files:
        return
    for path in now.keys() - files.keys():
        Path(path).unlink()
    for path, content in files.items():
        if now.get(path) != content:
            Path(path).write_bytes(content)
    acl.reload()
