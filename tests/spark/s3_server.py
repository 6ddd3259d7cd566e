"""An object store on this machine: moto's server, a stand-in for S3, in a process of its own."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from pyarrow import fs

from ports import fixed_port
from spark.drivers import driver, pip

PACKAGES = ("moto[s3]", "flask", "flask-cors")
KEYS = {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "hidden", "AWS_DEFAULT_REGION": "us-east-1"}
PROGRAM = "import sys; from moto.server import main; main(['-H', '127.0.0.1', '-p', sys.argv[1]])"


class ObjectStore:
    """A server with one bucket, `bucket`."""

    def __init__(self, port: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self.env = {**KEYS, "AWS_ENDPOINT_URL": f"http://{self.address}"}
        """What a reader finds in its environment."""
        self._files = fs.S3FileSystem(
            access_key=KEYS["AWS_ACCESS_KEY_ID"],
            secret_key=KEYS["AWS_SECRET_ACCESS_KEY"],
            region=KEYS["AWS_DEFAULT_REGION"],
            endpoint_override=self.address,
            scheme="http",
            allow_bucket_creation=True,
        )
        self._files.create_dir("bucket")

    def upload(self, folder: Path, name: str) -> str:
        """Copy a folder to `bucket/name`, without a store's index, which nobody reads; returns its URL."""
        for path in folder.rglob("*"):
            if path.is_file() and path.parent.name != "index":
                with self._files.open_output_stream(f"bucket/{name}/{path.relative_to(folder)}") as copy:
                    copy.write(path.read_bytes())
        return f"s3://bucket/{name}"

    def url_with_keys(self, url: str) -> str:
        """The same location with keys and endpoint inside the URL."""
        place = url.partition("://")[2]
        user = f"{KEYS['AWS_ACCESS_KEY_ID']}:{KEYS['AWS_SECRET_ACCESS_KEY']}"
        return f"s3://{user}@{place}?scheme=http&endpoint_override={self.address}&region=us-east-1"


@contextlib.contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    """Installs moto in a folder and starts it; the test is skipped where it cannot be installed."""
    packages = folder / "moto"
    pip("install", "--quiet", "--target", str(packages), *PACKAGES, what="moto")
    port = fixed_port()
    env = {**os.environ, "PYTHONPATH": str(packages)}
    with driver(folder / "moto.out", [sys.executable, "-c", PROGRAM, str(port)], env) as server:
        server.wait_for("Running on")
        yield ObjectStore(port)
