"""`pocketmq admin`: name servers. The calls are those of `AdminClient`."""

from click import echo
from pocketmq.client import AdminClient

from .options import Options
from .texts import java, row


async def update_kv_config(admin: AdminClient, given: Options) -> None:
    await admin.put_kv_config(given.required("namespace"), given.required("key"), given.required("value"))
    echo("create or update kv config to namespace success.")


async def delete_kv_config(admin: AdminClient, given: Options) -> None:
    await admin.delete_kv_config(given.required("namespace"), given.required("key"))
    echo("delete kv config from namespace success.")


async def wipe_write_perm(admin: AdminClient, given: Options) -> None:
    name = given.required("brokerName")
    for server, count in (await admin.wipe_write_perm(name)).items():
        echo(f"wipe write perm of broker[{name}] in name server[{server}] OK, {count}")


async def add_write_perm(admin: AdminClient, given: Options) -> None:
    name = given.required("brokerName")
    for server, count in (await admin.add_write_perm(name)).items():
        echo(f"add write perm of broker[{name}] in name server[{server}] OK, {count}")


async def get_namesrv_config(admin: AdminClient, given: Options) -> None:
    for server, settings in (await admin.namesrv_config()).items():
        echo(f"============{server}============")
        for key, value in sorted(settings.items()):
            echo(row("%-50s=  %s", key, value))


async def update_namesrv_config(admin: AdminClient, given: Options) -> None:
    key, value = given.required("key"), given.required("value")
    servers = await admin.update_namesrv_config({key: value})
    echo(f"update name server config success!{java(servers)}")
    echo(f"{key} : {value}")
