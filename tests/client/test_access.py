"""Keys, TLS and broker addresses as one value, and where they come from."""

import pickle
from pathlib import Path

import pytest
from pocketmq.client import InvalidArgument
from pocketmq.client.access import Access

NAMES = {field: field.upper() for field in Access.__struct_fields__}


def test_keys_come_from_the_value_or_from_the_file_of_mqadmin(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "tools.yml").write_text("accessKey: file1\nsecretKey: secret1\n")
    home = {"ROCKETMQ_HOME": str(tmp_path)}
    assert Access().with_keys_of_file(home) == Access(access_key="file1", secret_key="secret1")
    assert Access(uses_tls=True).with_keys_of_file({}) == Access(uses_tls=True)
    access = Access(access_key="a", secret_key="b", security_token="c", uses_tls=True)
    assert access.with_keys_of_file(home) == access
    (tmp_path / "conf" / "tools.yml").write_text("accessKey: file1\n")
    with pytest.raises(InvalidArgument, match=r"tools.yml: expected accessKey and secretKey"):
        Access().with_keys_of_file(home)


@pytest.mark.parametrize(
    ("access", "words"),
    [
        (Access(access_key="a"), "ACCESS_KEY, SECRET_KEY: set both or none"),
        (Access(secret_key="a"), "ACCESS_KEY, SECRET_KEY: set both or none"),
        (Access(certificate="c.pem"), "USES_TLS is required with TRUSTED, CERTIFICATE, KEY"),
        (Access(address_map="b:1"), "ADDRESS_MAP must be host:port=host:port, .* got 'b:1'"),
        (Access(address_map="b:1=c:2;b=1"), "ADDRESS_MAP must be host:port=host:port, .* got 'b=1'"),
    ],
)
def test_a_mistake_is_named_as_the_user_calls_it(access: Access, words: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{words}$"):
        access.check(NAMES)


def test_a_broker_is_reached_at_its_mapped_address() -> None:
    access = Access(address_map=" b:1 = c:2 ; [::1]:3=d:4;")
    access.check(NAMES)
    assert [access.reachable(address) for address in ("b:1", "[::1]:3", "e:5")] == ["c:2", "d:4", "e:5"]


def test_secrets_are_not_shown_and_the_value_travels_to_other_processes() -> None:
    access = Access(access_key="user", secret_key="hush", security_token="quiet", password="still")
    assert pickle.loads(pickle.dumps(access)) == access
    assert not any(secret in repr(access) for secret in ("hush", "quiet", "still"))
