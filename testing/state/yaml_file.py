"""A YAML file that a person wrote: read, or refused in one line that names the file and the line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..errors import LoadError

_MAX_FILE_BYTES: Final = 64 << 20


def read_yaml(path: Path, words: Sequence[str]) -> Mapping[Any, Any]:
    """The map of a YAML or JSON file, which may have these words. `LoadError`, in one line, for a file that cannot be
    read, is no map, or names a word of a map twice."""
    import yaml

    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise LoadError(f"{path} must have at most {_MAX_FILE_BYTES >> 20} MiB")
        content = yaml.load(path.read_bytes(), Loader=_loader())
    except OSError as error:
        raise LoadError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise LoadError(f"{path} is no text: {error}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f", line {mark.line + 1}"
        raise LoadError(f"{path}{line}: {getattr(error, 'problem', None) or 'no YAML'}") from error
    except RecursionError as error:
        raise LoadError(f"{path} is nested too deeply") from error
    except (ValueError, OverflowError) as error:  # a number of 5,000 digits, a date with a month 13
        raise LoadError(
            f"{path} has a value that cannot be read: {str(error).partition(chr(10))[0]}"
        ) from error
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise LoadError(f"{path} must be a map with {', '.join(words)}")
    return content


def _loader() -> Any:
    """A loader that refuses a key that a map names twice; plain YAML takes the last one."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key_node, _ in node.value:
                if isinstance(key_node, yaml.ScalarNode):
                    if key_node.value in seen:
                        problem = f"{key_node.value} is named twice"
                        raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
                    seen.add(key_node.value)
            return super().construct_mapping(node, deep=deep)

    return Loader
