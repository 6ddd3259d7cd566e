"""Which packages there are: each top-level folder with a `py.typed`, as `pocketmq.<folder>`, and the rooms inside it.

Everything else about the project is in pyproject.toml. This file exists because setuptools names packages after their
folders, and ours carry the prefix `pocketmq.` only once they are installed.
"""

from pathlib import Path

ROOT = Path(__file__).parent


def packages() -> list[str]:
    """The dotted names of all packages, as they are imported."""
    top = sorted(marker.parent for marker in ROOT.glob("*/py.typed"))
    folders = [init.parent for folder in top for init in sorted(folder.rglob("__init__.py"))]
    return [".".join(("pocketmq", *folder.relative_to(ROOT).parts)) for folder in folders]


if __name__ == "__main__":
    import sys
    import tempfile

    from setuptools import Extension, setup

    # Optional: where it cannot be built, the functions in Python beside them are used.
    native = Extension(
        "pocketmq.core.native",
        sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("core/*.c")),
        depends=["core/core.h", "core/record_bytes.h"],
        extra_compile_args=["-O2", "-g0"],
        extra_link_args=["-s"],
        optional=True,
    )
    # What setuptools writes on its way to a wheel stays out of the checkout: a later build would take deleted files
    # from `build`, and an egg-info beside the source would be a second distribution. Only an sdist needs it there.
    with tempfile.TemporaryDirectory(prefix="pocketmq-build-") as scratch:
        options = {"build": {"build_base": scratch}}
        if "sdist" not in sys.argv:
            options["egg_info"] = {"egg_base": scratch}
        setup(packages=packages(), ext_modules=[native], options=options)
