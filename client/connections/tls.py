"""TLS towards name servers and brokers: which certificate is sent, which ones are trusted.

The handshake begins at once, on the ports that serve plain clients too. As in Java, `use_tls=True` alone is test mode:
everything is encrypted, but any certificate is accepted, so anyone between can read and change the traffic. This is
logged once as a warning. Servers are checked with `tls_test_mode_enable=False` and `tls_client_auth_server=True`. Host
names in certificates are not compared, as in Java, because servers are found by addresses that change. An
`ssl.SSLContext` given as `use_tls` is used as it is. Mirrors `TlsHelper`.
"""

import functools
import logging
import ssl

from ..errors import InvalidSetting
from ..settings.client_settings import ClientSettings

_log = logging.getLogger(__name__)


def tls_context(settings: ClientSettings) -> ssl.SSLContext | None:
    """None without `use_tls`; `InvalidSetting` for certificates or keys that cannot be read."""
    if isinstance(settings.use_tls, ssl.SSLContext):
        return settings.use_tls
    if not settings.use_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if settings.tls_test_mode_enable or not settings.tls_client_auth_server:
        warn_unchecked()
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
                settings.tls_client_key_password or "",  # never None: OpenSSL would ask on the terminal
            )
    except (OSError, ssl.SSLError) as error:
        named = (
            settings.tls_client_trust_cert_path,
            settings.tls_client_cert_path,
            settings.tls_client_key_path,
        )
        raise InvalidSetting(f"TLS: {', '.join(filter(None, named))}: {error}") from error
    return context


@functools.cache
def warn_unchecked() -> None:
    """Once a process."""
    _log.warning(
        "TLS IS ON, BUT CERTIFICATES ARE NOT CHECKED: anyone between this client and the servers can read and change "
        "the traffic. To check them set tls_test_mode_enable=False, tls_client_auth_server=True and "
        "tls_client_trust_cert_path, or pass an ssl.SSLContext as use_tls."
    )
