"""The certificates of `client/certificates`, as settings of a client."""

from pathlib import Path
from typing import Final

FILES: Final = Path(__file__).parent / "client" / "certificates"
TRUSTS: Final = {"tls_client_auth_server": True, "tls_client_trust_cert_path": str(FILES / "ca.pem")}
SHOWS: Final = {
    "tls_client_cert_path": str(FILES / "client.pem"),
    "tls_client_key_path": str(FILES / "client.key"),
}
