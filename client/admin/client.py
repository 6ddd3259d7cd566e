"""AdminClient: looking into a cluster and changing it, as `mqadmin` does.

    async with AdminClient(namesrv_addr="127.0.0.1:9876") as admin:
        await admin.update_topic(TopicConfig(topic_name="Orders"), cluster="DefaultCluster")
        print(await admin.lag("billing", "Orders"))

Values are the bodies of `pocketmq.protocol`, frozen. Every call is one or a few requests, nothing is remembered but
connections and addresses, and cancelling a call leaves nothing behind. What a server refuses is `RequestRefused` with
its code; `NotReachable`, `RouteNotFound`, `NotOnline` and `MessageNotFound` say the rest. A broker's text that is no
body is `BodyError` of the protocol package.

Every class builds on the one before it, each a file: admin_calls.py, admin_topics.py, admin_groups.py,
admin_offsets.py, admin_brokers.py, admin_messages.py; admin_security.py stands beside them. Mirrors
`DefaultMQAdminExt`; `pocketmq admin` prints the answers.
"""

from .messages import AdminMessages
from .security import AdminSecurity


class AdminClient(AdminMessages, AdminSecurity):
    """Use as `async with`, in one event loop. Settings are keywords, those of `ClientSettings` and `timeout_ms`."""
