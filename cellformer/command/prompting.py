"""Options about the prompt that several commands share: a file, a conversation, the language of
its translation."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cellformer.engine import InputError
from cellformer.engine.cells.errors import nearest
from cellformer.names import Loaded

MOST = 10_000_000  # bytes of a file with a prompt


def text(prompt: str | None, file: Path | None) -> str | None:
    """The prompt, or a file's prompt without its last line break. Raises InputError."""
    if file is None:
        return prompt
    if prompt is not None:
        raise InputError("--prompt and --file cannot be combined; give only one of them")
    if not file.is_file():
        raise InputError(f"there is no file {file}; name a text file with --file")
    if file.stat().st_size > MOST:
        raise InputError(
            f"{file} has more than {MOST:,} bytes, which no model can read; shorten the file"
        )
    try:
        return file.read_text(encoding="utf-8-sig").removesuffix("\n")
    except UnicodeDecodeError:
        raise InputError(f"{file} is not UTF-8 text; save the file as UTF-8") from None


def answering_in(loaded: Loaded, language: str | None) -> Loaded:
    """A translator whose answer begins with the token of a language, by its name in the vocabulary:
    fra_Latn, fr_XX, or fr for M2M-100's __fr__. Raises InputError."""
    if language is None:
        return loaded
    model = loaded.model
    if not model.read:
        raise InputError(f"{loaded.name} translates nothing; leave out --answer-language")
    found = [name for name in (language, f"__{language}__") if name in model.vocabulary.texts]
    if not found:
        near = nearest(language, model.vocabulary.texts)
        raise InputError(f"the vocabulary has no language {language!r}; {near}")
    rules = replace(model.rules, first=(model.vocabulary.texts.index(found[0]),))
    return replace(loaded, model=replace(model, rules=rules))


def stops(texts: Sequence[str] | None) -> tuple[str, ...]:
    """The texts of --stop. Raises InputError for an empty one."""
    if not all(texts or ()):
        raise InputError("--stop is an empty text; give at least one character")
    return tuple(texts or ())


def system(chat: bool, told: str | None, no_special: bool) -> str | None:
    """The system text of --chat, "" for none; None if no chat is asked for. Raises InputError."""
    if not chat:
        if told is not None:
            raise InputError("--system needs a conversation; add --chat")
        return None
    if no_special:
        raise InputError(
            "--chat adds the special tokens of the chat template; leave out --no-special"
        )
    return told or ""
