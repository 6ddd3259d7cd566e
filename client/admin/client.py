"""AdminClient: looking into a cluster and changing it, as `mqadmin` does.

    async with AdminClient(namesrv_addr="127.0.0.1:9876") as admin:
        await admin.update_topic(TopicConfig(topic_name="Orders"), cluster="DefaultCluster")
        print(await admin.lag("billing", "Orders"))

Values are the bodies of `pocketmq.protocol`, frozen. A call is one or a few requests; it keeps nothing but connections
and addresses, and cancelling it leaves nothing behind. It raises `RequestRefused` with the code of a server that says
no, `NotReachable` if a server does not answer, or not readably, `RouteNotFound`, `NotOnline` and `MessageNotFound` if
what it looks for does not exist, and `InvalidArgument`. Mirrors `DefaultMQAdminExt`; `pocketmq admin` prints the
answers.
"""

import re
from typing import TYPE_CHECKING, NoReturn

from .messages import AdminMessages
from .security import AdminSecurity


class AdminClient(AdminMessages, AdminSecurity):
    """Use as `async with`, in one event loop. Settings are keywords, those of `ClientSettings` and `timeout_ms`."""

    if not TYPE_CHECKING:  # type checkers must not take every name for a method

        def __getattr__(self, name: str) -> NoReturn:
            """Name the method for a Java one: each docstring here mentions the official name."""
            java_name = re.compile(rf"\b{re.escape(name)}\b")
            for attribute in () if name.startswith("_") else dir(type(self)):
                documented = getattr(type(self), attribute).__doc__ or ""
                if not attribute.startswith("_") and java_name.search(documented):
                    raise AttributeError(f"AdminClient has no {name}: its Python name is {attribute}")
            raise AttributeError(f"AdminClient has no {name}")
