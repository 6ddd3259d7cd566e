"""What producers and consumers have in common: group, settings, hooks, namespace, and how they start and end.

    start       make its parts, register with the instance, start that, then the trace, then join the group
    shutdown    leave the group, then stop the trace, then the instance, which ends with its last client

A subclass says what its parts are, how it joins and how it leaves. The instance itself, which several clients may
share, is `instance.py`.
"""

import logging
import warnings
from collections.abc import Iterable
from typing import ClassVar, Self

from ..errors import ClientClosed, ClientError
from ..hooks.hooks import Hook, Hooks
from ..hooks.trace_dispatcher import AsyncTraceDispatcher, MakeSender
from ..settings.client_settings import ClientSettings
from ..values.namespaces import Namespace
from .instance import ClientInstance
from .instance_config import instance_config

_log = logging.getLogger(__name__)


class Client:
    """Use as `async with`, in one event loop; once. A client that was started and never shut down is reported as a
    ResourceWarning."""

    settings: ClientSettings
    _display_name: ClassVar[str]
    """Class name used in error messages."""
    _trace_kind: ClassVar[str]
    """PRODUCE or CONSUME: part of the trace producer's group."""
    _instance: ClientInstance | None = None
    _closed = False
    _starting = False

    def __init__(
        self,
        group: str,
        settings: ClientSettings,
        hooks: Iterable[Hook],
        make_sender: MakeSender | None = None,
    ) -> None:
        self.settings = settings
        self._namespace = Namespace(settings.namespace)
        self._group = self._namespace.wrap(group)
        self._hooks = Hooks(hooks)
        self._trace: AsyncTraceDispatcher | None = None
        if settings.enable_trace and make_sender is not None:
            kind, own = self._trace_kind, self._hooks
            self._trace = AsyncTraceDispatcher(self._group, kind, settings, own, make_sender)

    def __repr__(self) -> str:
        group = f" {self._group!r}" if self._group else ""
        return f"<{type(self).__name__}{group} {self._state}>"

    def __del__(self) -> None:
        if self._instance is not None and not self._closed:
            warnings.warn(f"{self!r} was never shut down", ResourceWarning, source=self, stacklevel=1)

    @property
    def _state(self) -> str:
        if self._closed:
            return "shut down"
        if self._instance is not None:
            return "running"
        return "starting" if self._starting else "not started"

    @property
    def _title(self) -> str:
        """How errors name it."""
        return f"{self._display_name} of {self._group}" if self._group else self._display_name

    @property
    def group(self) -> str:
        """As brokers know it: with the namespace, if one is set."""
        return self._group

    @property
    def client_id(self) -> str:
        """As brokers and tools name this member of the group."""
        return self._running.client_id

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shutdown()

    async def start(self) -> None:
        """Join the group. The brokers need not be up yet. A start that fails leaves nothing behind. ClientClosed if the
        client was started before, or is shut down meanwhile."""
        if self._instance is not None or self._closed or self._starting:
            raise ClientClosed(
                f"the {self._title} was started before: a client starts once "
                f"(The {self._display_name} service state not OK, maybe started once)"
            )
        self._starting = True
        try:
            await self._start()
        finally:
            self._starting = False

    async def _start(self) -> None:
        instance = ClientInstance.get(instance_config(self.settings, self._hooks.rpc))
        instance.references += 1
        try:
            await self._build(instance)
            self._raise_if_closed()
            self._register(instance)
        except BaseException:
            instance.references -= 1
            await instance.shutdown()
            raise
        instance.references -= 1
        self._instance = instance
        try:
            await instance.routes.name_servers.find_servers()
            self._raise_if_closed()
            instance.start()
            await self._start_trace()
            self._raise_if_closed()
            await self._join(instance)
            self._raise_if_closed()
        except ClientError:
            self._raise_if_closed()  # if it was shut down, that is the reason
            await self.shutdown()
            raise
        except BaseException:
            await self.shutdown()
            raise

    def _raise_if_closed(self) -> None:
        if self._closed:
            raise ClientClosed(f"the {self._title} was shut down while it started")

    async def shutdown(self) -> None:
        """Leave the group; nothing if it was left before. If it is cancelled, everything is released all the same."""
        instance = self._instance
        if instance is None or self._closed:
            self._closed = self._closed or self._starting
            return
        instance.check_loop()
        self._closed = True
        try:
            await self._leave(instance)
        finally:
            self._withdraw(instance)
            try:
                if self._trace is not None:
                    await self._trace.shutdown()
            finally:
                await instance.shutdown()

    async def _start_trace(self) -> None:
        """As in Java, a trace that cannot start is logged, and the client works without it."""
        if self._trace is None:
            return
        try:
            await self._trace.start()
        except ClientError as error:
            _log.warning("trace dispatcher start failed: %s", error)

    @property
    def _running(self) -> ClientInstance:
        """The instance, also after shutdown. ClientClosed before the start."""
        if self._instance is None:
            raise self._not_started()
        return self._instance

    def _require_running(self) -> ClientInstance:
        """The instance; ClientClosed before the start, after shutdown, or in another loop or thread."""
        if self._instance is None or self._closed:
            raise ClientClosed(f"the {self._title} is not started, or was shut down")
        self._instance.check_loop()
        return self._instance

    def _check_usable(self) -> None:
        """For calls that are allowed before the start; after it as `_require_running`."""
        if self._instance is not None:
            self._require_running()

    def _not_started(self) -> ClientClosed:
        return ClientClosed(f"the {self._title} is not started")

    # -- what a subclass defines; a client that is in no group only holds the instance

    async def _build(self, instance: ClientInstance) -> None:
        """Make the parts; nothing uses them yet."""

    def _register(self, instance: ClientInstance) -> None:
        """Enter the tables of the instance. ClientError if they have the group already."""
        instance.references += 1

    async def _join(self, instance: ClientInstance) -> None:
        """Begin to work; the instance runs."""

    async def _leave(self, instance: ClientInstance) -> None:
        """End the work in the official order, and unregister."""

    def _withdraw(self, instance: ClientInstance) -> None:
        """Leave the tables of the instance and release everything, also after a `_leave` that failed."""
        instance.references -= 1
