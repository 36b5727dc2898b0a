"""Two sentences of one model, as texts: the command `patch` and `cellformer.patch` ask here."""

from collections.abc import Sequence

from cellformer import names
from cellformer.engine.cells import finite
from cellformer.engine.cells.errors import InputError
from cellformer.engine.studies import patching
from cellformer.engine.studies.patching import Comparison, Path
from cellformer.names import Loaded, word_of


def others(loaded: Loaded, against: str, special: bool = True) -> list[int]:
    """The ids of the sentence that another is patched from; where the model has no tokenizer,
    `against` is a list of them. Raises InputError."""
    found = names.text_ids(loaded.model, against, special, "--against")
    patching.check_pair(loaded.model, loaded.ids, found)
    return found


def compared(
    loaded: Loaded,
    other: Sequence[int],
    target: str | None = None,
    rival: str | None = None,
    sites: Sequence[str] = (),
    path: tuple[str, str] | None = None,
) -> Comparison:
    """The sentence patched from another: at each site, or along a path from one site to another.

    Raises InputError for an unknown word or site.
    """
    if sites and path:
        raise InputError("a path has its own sites; leave out the others")
    graph, row = loaded.graph, loaded.place_of_answer
    finite.check(graph, graph.values)
    wanted = None if target is None else word_of(loaded.model, target, graph, row)
    beside = None if rival is None else word_of(loaded.model, rival, graph, row, "--rival")
    at = [patching.site(graph, text) for text in sites] or None
    way = None if path is None else Path(*(patching.site(graph, text) for text in path))
    return patching.patch_each(graph, other, row, wanted, beside, at, way)
