"""`pocketmq admin`: name servers. The calls are those of `AdminClient`."""

from click import echo
from pocketmq.client import AdminClient

from .given import Given
from .texts import java, row


async def update_kv_config(admin: AdminClient, given: Given) -> None:
    await admin.put_kv_config(given.needed("namespace"), given.needed("key"), given.needed("value"))
    echo("create or update kv config to namespace success.")


async def delete_kv_config(admin: AdminClient, given: Given) -> None:
    await admin.delete_kv_config(given.needed("namespace"), given.needed("key"))
    echo("delete kv config from namespace success.")


async def wipe_write_perm(admin: AdminClient, given: Given) -> None:
    name = given.needed("brokerName")
    for server, count in (await admin.wipe_write_perm(name)).items():
        echo(f"wipe write perm of broker[{name}] in name server[{server}] OK, {count}")


async def add_write_perm(admin: AdminClient, given: Given) -> None:
    name = given.needed("brokerName")
    for server, count in (await admin.add_write_perm(name)).items():
        echo(f"add write perm of broker[{name}] in name server[{server}] OK, {count}")


async def get_namesrv_config(admin: AdminClient, given: Given) -> None:
    for server, settings in (await admin.namesrv_config()).items():
        echo(f"============{server}============")
        for key, value in sorted(settings.items()):
            echo(row("%-50s=  %s", key, value))


async def update_namesrv_config(admin: AdminClient, given: Given) -> None:
    key, value = given.needed("key"), given.needed("value")
    servers = await admin.update_namesrv_config({key: value})
    echo(f"update name server config success!{java(servers)}")
    echo(f"{key} : {value}")
