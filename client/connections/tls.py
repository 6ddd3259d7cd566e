"""TLS towards name servers and brokers: which certificate is sent, which is accepted.

The handshake begins at once, on the ports that serve plain clients too. In test mode, the official default, everything
is encrypted and any certificate is accepted; otherwise the server's certificate is checked if `tls_client_auth_server`
is set. Names in certificates are not checked, as in Java: the addresses of servers change. Mirrors `TlsHelper`.
"""

import ssl

from ..errors import ClientError
from ..settings.client_settings import ClientSettings


def tls_context(settings: ClientSettings) -> ssl.SSLContext | None:
    """None without `use_tls`; `ClientError` for certificates or keys that cannot be read."""
    if not settings.use_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if settings.tls_test_mode_enable:
        return context
    try:
        if settings.tls_client_auth_server:
            context.verify_mode = ssl.CERT_REQUIRED
            if settings.tls_client_trust_cert_path:
                context.load_verify_locations(settings.tls_client_trust_cert_path)
            else:
                context.load_default_certs()
        if settings.tls_client_cert_path:
            context.load_cert_chain(
                settings.tls_client_cert_path,
                settings.tls_client_key_path,
                _password(settings.tls_client_key_password),
            )
    except (OSError, ssl.SSLError) as error:
        raise ClientError(f"TLS: {_files(settings)}: {error}") from error
    return context


def _password(text: str | None) -> str:
    """Never None: OpenSSL would ask for it on the terminal."""
    return text or ""


def _files(settings: ClientSettings) -> str:
    named = (
        settings.tls_client_trust_cert_path,
        settings.tls_client_cert_path,
        settings.tls_client_key_path,
    )
    return ", ".join(name for name in named if name)
