"""Models of the Hugging Face Hub: `owner/name`, `owner/name@revision`, `owner/name/file.gguf`.

Names are taken as people paste them: an address of a page, `hf.co/owner/name:Q4_K_M`, the beginning
of a commit's hash, a folder of the cache, and `gpt2`, which the Hub has moved to an owner.
Files in the local cache are used without network access; otherwise the needed files are downloaded
into it. The library's variables HF_HOME, HF_ENDPOINT and HF_TOKEN apply.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cellformer.engine.cells.errors import InputError, first_line
from cellformer.engine.models import formats
from cellformer.engine.models.formats import ENDINGS, Source
from cellformer.engine.models.tensors import weight_files

ADDRESS = re.compile(r"(https?://)?(www\.)?(huggingface\.co|hf\.co)/", re.IGNORECASE)
NAME = re.compile(
    r"(?P<repo>[\w-][\w.-]*/[\w-][\w.-]*)"
    r"(/(?:tree|blob|resolve|raw)/(?P<shown>[^/@:]+)(?:/[\w./-]+(?<!\.gguf))?)?"
    r"(/(?P<file>[^@:]+\.gguf))?(:(?P<packed>[\w.-]+))?(@(?P<revision>.+))?"
)
OWNERS = {  # of models that once had none
    "openai-community": ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "openai-gpt"),
    "google-bert": (
        *("bert-base-uncased", "bert-base-cased", "bert-large-uncased", "bert-large-cased"),
        *("bert-base-multilingual-cased", "bert-base-multilingual-uncased", "bert-base-chinese"),
    ),
    "FacebookAI": ("roberta-base", "roberta-large", "xlm-roberta-base", "xlm-roberta-large"),
    "distilbert": (
        *("distilgpt2", "distilbert-base-uncased", "distilbert-base-cased", "distilroberta-base"),
        *("distilbert-base-uncased-finetuned-sst-2-english", "distilbert-base-multilingual-cased"),
    ),
    "almanach": ("camembert-base",),
    "albert": ("albert-base-v2",),
    "google-t5": ("t5-small", "t5-base"),
    "sentence-transformers": ("all-MiniLM-L6-v2", "all-mpnet-base-v2"),
}
WITH_OWNER = {name: f"{owner}/{name}" for owner, names in OWNERS.items() for name in names}
PLACE = "models--"  # how the cache's folder of a model begins
TOKENIZERS = (  # one of them is there, if any
    "tokenizer.json",
    "tokenizer.model",
    "spiece.model",
    "vocab.json",
    "vocab.txt",
    "words.json",
    "characters.json",
)
WANTED = (  # beside the weights
    *TOKENIZERS,
    *("source.spm", "target.spm", "target_vocab.json"),
    "config.json",
    "generation_config.json",
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
    file: str | None = None
    revision: str | None = None
    packed: str | None = None  # the kind of its numbers, Q4_K_M, which is part of a file's name

    def names(self, file: str) -> bool:
        """Whether a GGUF file is of the wanted kind."""
        return self.packed is None or self.packed.lower() in file.lower()

    def __str__(self) -> str:
        return self.repo + (f"@{self.revision}" if self.revision else "")


def wanted_of(name: str) -> Wanted | None:
    """The model that a name means; None if it is not of the Hub."""
    bare = ADDRESS.sub("", name.partition("?")[0], count=1).rstrip("/")
    if bare.startswith(PLACE):
        bare = bare.removeprefix(PLACE).replace("--", "/", 1)
    owned = re.sub(r"^[\w.-]+", lambda first: WITH_OWNER.get(first[0], first[0]), bare, count=1)
    match = NAME.fullmatch(bare if NAME.fullmatch(bare) else owned)
    if match is None or match["repo"].endswith(ENDINGS):
        return None
    revision = match["revision"] or match["shown"]
    return Wanted(match["repo"], match["file"], revision, match["packed"])


def reads(name: str) -> bool:
    """A name on the Hub, unless a file or folder has that name; or a model's folder of the
    cache."""
    if Path(name).exists():
        return (Path(name) / "snapshots").is_dir() and Path(name).name.startswith(PLACE)
    return wanted_of(name) is not None


def open_source(name: str) -> Source:
    """The model of a name: from the cache, or downloaded."""
    if Path(name).exists():
        folder = snapshot(Path(name), None)
        if folder is None:
            raise InputError(
                f"{name} does not contain a complete model; give the model as owner/name to "
                "download the rest"
            )
        return formats.open_source(str(folder))
    wanted = wanted_of(name)
    assert wanted is not None, name
    try:
        import huggingface_hub  # noqa: F401
    except ImportError:
        raise InputError(
            f"there is no file or folder {name}; to use the Hugging Face Hub model of that name, "
            "run `pip install 'cellformer[hub]'`"
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

    folder = snapshot(
        Path(HF_HUB_CACHE) / (PLACE + wanted.repo.replace("/", "--")), wanted.revision
    )
    if folder is None:
        return None
    if wanted.file:
        return folder / wanted.file if (folder / wanted.file).is_file() else None
    if (folder / "config.json").is_file() and not wanted.packed:
        with suppress(InputError):
            weight_files(folder)
            return folder
    packed = [file for file in folder.glob("*.gguf") if wanted.names(file.name)]
    return packed[0] if len(packed) == 1 else None


def snapshot(place: Path, revision: str | None) -> Path | None:
    """The folder of a revision in a model's folder of the cache: a branch or tag, a commit's hash
    or how it begins. Without one it is `main`, or the only one there."""
    snapshots = place / "snapshots"
    named = place / "refs" / (revision or "main")
    if named.is_file():
        return snapshots / named.read_text()
    there = [folder for folder in sorted(snapshots.glob("*")) if folder.is_dir()]
    fitting = [folder for folder in there if folder.name.startswith(revision or "")]
    return fitting[0] if len(fitting) == 1 else None


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
        reason = f"{wanted.repo} is a gated model: ask for access on its Hub page, and set HF_TOKEN"
    except hub.RevisionNotFoundError:
        reason = (
            f"{wanted.repo} has no revision {wanted.revision} on the Hub; give a branch, a tag, "
            "or a commit with all 40 digits of its hash"
        )
    except (hub.RepositoryNotFoundError, hub.HFValidationError):
        reason = f"there is no file or folder {path}, and no model {wanted.repo} on the Hub"
    except hub.OfflineModeIsEnabled:
        reason = (
            f"the cache does not have {wanted}, and HF_HUB_OFFLINE prevents the download; unset "
            "HF_HUB_OFFLINE"
        )
    except hub.HfHubHTTPError as error:
        reason = f"the Hub did not send {wanted}: {first_line(error)}"
    except Exception as error:  # of the network: which ones differs with the library's version
        reason = (
            f"there is no file or folder {path}, and no model {wanted} in the cache. cellformer "
            f"cannot reach the Hub ({type(error).__name__}): check the network and HF_ENDPOINT"
        )
    else:
        return Path(there) / files[0] if files[0].endswith(".gguf") else Path(there)
    raise InputError(reason)


def needed(wanted: Wanted, there: Sequence[str]) -> list[str]:
    """The files to download, of all files of a model."""
    if wanted.file:
        if wanted.file not in there:
            raise InputError(f"{wanted} has no file {wanted.file} on the Hub")
        return [wanted.file]
    for kind in WEIGHTS if wanted.packed is None else ():
        weights = [file for file in there if re.fullmatch(kind, file)]
        if weights and "config.json" in there:
            return [file for file in there if file in WANTED or MODULES.fullmatch(file)] + weights
    return _gguf(wanted, [file for file in there if file.endswith(".gguf")])


def _gguf(wanted: Wanted, every: Sequence[str]) -> list[str]:
    """The one wanted GGUF file among all of a model."""
    packed = [file for file in every if wanted.names(file)]
    if len(packed) == 1:
        return packed
    if every and not packed:
        raise InputError(
            f"{wanted} has no GGUF file with {wanted.packed} in its name; its GGUF files are "
            f"{', '.join(every)}"
        )
    if packed:
        names = ", ".join(f"{wanted.repo}/{file}" for file in packed)
        raise InputError(f"{wanted} has several models; name one of them: {names}")
    raise InputError(f"{wanted} has no weights on the Hub in a format that cellformer can read")
