"""Models of the Hugging Face Hub: `owner/name`, `owner/name@revision`, `owner/name/file.gguf`.

Files in the local cache are used without network access; otherwise the needed files are downloaded
into it. The library's variables HF_HOME, HF_ENDPOINT and HF_TOKEN apply.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.cells.errors import InputError, first_line
from engine.models import formats
from engine.models.formats import ENDINGS, Source
from engine.models.tensors import weight_files

NAME = re.compile(
    r"(?P<repo>[\w-][\w.-]*/[\w-][\w.-]*)(/(?P<file>[^@]+\.gguf))?(@(?P<revision>.+))?"
)
TOKENIZERS = (  # one of them is there, if any
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "words.json",
    "characters.json",
)
WANTED = (  # beside the weights
    *TOKENIZERS,
    "config.json",
    "merges.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)
MODULES = re.compile(r"\d+_\w+/(config\.json|model\.safetensors|pytorch_model\.bin)")
WEIGHTS = (  # the first kind that there is
    r"model(-\d+-of-\d+)?\.safetensors(\.index\.json)?",
    r"pytorch_model(-\d+-of-\d+)?\.bin(\.index\.json)?",
)


@dataclass(frozen=True)
class Wanted:
    """A model of the Hub, or one file of it."""

    repo: str
    file: str | None
    revision: str | None

    def __str__(self) -> str:
        return self.repo + (f"@{self.revision}" if self.revision else "")


def reads(name: str) -> bool:
    """A name on the Hub, unless a file or folder has that name."""
    match = NAME.fullmatch(name)
    return match is not None and not Path(name).exists() and not match["repo"].endswith(ENDINGS)


def open_source(name: str) -> Source:
    """The model of a name: from the cache, or downloaded."""
    match = NAME.fullmatch(name)
    assert match is not None, name
    wanted = Wanted(**match.groupdict())
    try:
        import huggingface_hub  # noqa: F401
    except ImportError:
        raise InputError(
            f"there is no file or folder {name}; for a model of that name of the Hugging Face Hub, "
            "`pip install 'cellformer[hub]'`"
        ) from None
    return formats.open_source(str(found(wanted)))


def found(wanted: Wanted) -> Path:
    """The model from the cache, or else downloaded; without its tokenizer if the cache lacks it
    offline.

    Another program may have cached the weights alone; then the other files are downloaded.
    """
    path = cached(wanted)
    if path and (path.is_file() or any((path / name).is_file() for name in TOKENIZERS)):
        return path
    try:
        return fetched(wanted)
    except InputError:
        if path:
            return path
        raise


def cached(wanted: Wanted) -> Path | None:
    """The model's files in the cache, if its weights are among them."""
    from huggingface_hub.constants import HF_HUB_CACHE

    place = Path(HF_HUB_CACHE) / f"models--{wanted.repo.replace('/', '--')}"
    revision = wanted.revision or "main"
    named = place / "refs" / revision
    folder = place / "snapshots" / (named.read_text() if named.is_file() else revision)
    if wanted.file:
        return folder / wanted.file if (folder / wanted.file).is_file() else None
    if (folder / "config.json").is_file():
        with suppress(InputError):
            weight_files(folder)
            return folder
    packed = list(folder.glob("*.gguf"))
    return packed[0] if len(packed) == 1 else None


def fetched(wanted: Wanted) -> Path:
    """The model, with its files downloaded into the cache. Raises InputError."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub import errors as hub

    path = wanted.repo + (f"/{wanted.file}" if wanted.file else "")
    try:
        info: Any = HfApi().model_info(wanted.repo, revision=wanted.revision)
        files = needed(wanted, [sibling.rfilename for sibling in info.siblings or []])
        there = snapshot_download(wanted.repo, revision=wanted.revision, allow_patterns=files)
    except InputError:
        raise
    except hub.GatedRepoError:
        reason = f"{wanted.repo} is gated: ask for access on its page, and set HF_TOKEN"
    except hub.RevisionNotFoundError:
        reason = f"{wanted.repo} has no revision {wanted.revision} on the Hub"
    except (hub.RepositoryNotFoundError, hub.HFValidationError):
        reason = f"there is no file or folder {path}, and no model {wanted.repo} on the Hub"
    except hub.OfflineModeIsEnabled:
        reason = f"{wanted} is not in the cache, and HF_HUB_OFFLINE is set"
    except hub.HfHubHTTPError as error:
        reason = f"the Hub did not give {wanted}: {first_line(error)}"
    except Exception as error:  # of the network: which ones differs with the library's version
        kind = type(error).__name__
        reason = (
            f"there is no file or folder {path}; as a model, {wanted} is not in the cache, and the "
            f"Hub cannot be reached ({kind}): look at the network, and at HF_ENDPOINT"
        )
    else:
        return Path(there) / files[0] if files[0].endswith(".gguf") else Path(there)
    raise InputError(reason)


def needed(wanted: Wanted, there: Sequence[str]) -> list[str]:
    """The files to download, of all files of a model."""
    if wanted.file:
        if wanted.file not in there:
            raise InputError(f"{wanted} has no {wanted.file} on the Hub")
        return [wanted.file]
    for kind in WEIGHTS:
        weights = [file for file in there if re.fullmatch(kind, file)]
        if weights and "config.json" in there:
            wanted_too = [file for file in there if file in WANTED or MODULES.fullmatch(file)]
            return wanted_too + weights
    packed = [file for file in there if file.endswith(".gguf")]
    if len(packed) == 1:
        return packed
    if packed:
        names = ", ".join(f"{wanted.repo}/{file}" for file in packed)
        raise InputError(f"{wanted} holds several models; name one of them: {names}")
    raise InputError(f"{wanted} holds no weights on the Hub that can be read here")
