"""The tour: stops that explain a transformer with this model's numbers, and only the parts that it
has. Pages that explain themselves add further stops.

Each stop explains a concept or two in sentences with live numbers, and links to a sheet that shows
it. The stops are on Start; each of their sheets has a link to the next stop.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import NamedTuple

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import MATCH, MAX, MIN
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.name import ENCODER
from cellformer.engine.cells.packages import modules
from cellformer.engine.models.forward import SOURCE
from cellformer.engine.models.spec import CLASSES
from cellformer.engine.studies.part_names import head_of, said
from cellformer.exporters import pages as of_all_pages
from cellformer.exporters.compose.address import quoted
from cellformer.exporters.compose.lookups import entry
from cellformer.exporters.compose.sentences import percent, quote, rounded, sentence
from cellformer.exporters.model import word_columns
from cellformer.exporters.model.block_sheets import ATTRIBUTION, PLAY, SWITCHES
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.words import stage_names
from cellformer.exporters.pages import attribution, machine
from cellformer.exporters.play import ranking

BEGIN = (
    "A language model reads a text as tokens. A token is a word, or a piece of a word, from a "
    "fixed list: the vocabulary. Each token has a number, its id. "
)
TOKENS = {  # what each kind of model says of a text
    "next word": BEGIN + "The model predicts which token comes next.",
    "masked word": BEGIN + "The model predicts which tokens fit in place of a hidden token.",
    "sentence": BEGIN + "The model turns a whole sentence into one list of numbers.",
    "class": BEGIN + "The model predicts the class of a text.",
    "token class": BEGIN + "The model predicts the class of each token.",
}


OF_TWO_STACKS = BEGIN + (
    "An encoder reads every token of the source sentence together with all the others. A decoder "
    "then writes an answer, token after token."
)


class Stop(NamedTuple):
    """A stop of the tour: its concept, its link, and its text."""

    concept: str
    target: str
    text: Expression

    @property
    def sheet(self) -> str:
        """The name of the sheet that it links to."""
        return self.target.rpartition("!")[0].strip("'")


def stops(book: ModelBook) -> list[Stop]:
    """The stops of a whole model; none for a workbook of one live part. A page with a `CONCEPT` has
    one of its own, whose text it gives in `explained`."""
    if book.live:
        return []
    tellers: list[Callable[[ModelBook], Stop]]
    tellers = [_tokens, _embedding]
    tellers += [_stream] if book.plan.layers else []
    tellers += [_attention] if any(machine.Canvas(book).layers.values()) else []
    tellers += [_cross] if book.plan.sources else []
    tellers += [_mlp] if _mlps(book) else []
    tellers += [_vector, _cosine] if book.plan.gives == "sentence" else [_logits, _temperature]
    pages = {page.SHEET: page for page in modules(of_all_pages.__name__, of_all_pages.__path__)}
    own = [pages[name] for name in book.sheets if hasattr(pages.get(name), "CONCEPT")]
    return [
        *(tell(book) for tell in [*tellers, _change]),
        *(Stop(page.CONCEPT, _start_of(page.SHEET), page.explained(book)) for page in own),
    ]


def links(told: Sequence[Stop], sheet: str) -> Iterator[tuple[str, str]]:
    """The links from the stops on a sheet to the next ones: a text, and an address."""
    for k, stop in enumerate(told, 1):
        if stop.sheet == sheet and k < len(told):
            yield (
                worded(
                    "stop {k} of {n}, next stop: {concept} →",
                    k=k,
                    n=len(told),
                    concept=worded(told[k].concept),
                ),
                told[k].target,
            )
        elif stop.sheet == sheet:
            yield worded("stop {k} of {k}: the end of the tour →", k=k), _start_of("Start")


def _start_of(sheet: str) -> str:
    return f"{quoted(sheet)}!A1"


# --- from the text to the stream ------------------------------------------------------------


def _tokens(book: ModelBook) -> Stop:
    told = sentence(OF_TWO_STACKS if book.plan.sources else TOKENS[book.plan.gives])
    prefix = f"{ENCODER}." if book.plan.sources else ""
    names = ("sentence", "n_prompt")
    if all(prefix + name in book.graph.blocks for name in names):
        typed = {name: book.graph[prefix + name][0, 0] for name in names}
        counted = "You typed ‘{sentence}’; number of tokens: {n_prompt}."
        told = told & " " & sentence(counted, **typed)
    more = "Type another text on Play. Every number of this workbook then changes."
    return Stop("tokens", _start_of(PLAY), told & " " & sentence(more))


def _embedding(book: ModelBook) -> Stop:
    block = book.graph["embed"]
    n = block.shape[1]
    first = [rounded(machine.at_token(book, block, j), 2) for j in range(min(3, n))]
    told = sentence(
        "The model stores a list of {n} numbers for every token. This list is called the "
        "embedding. Tokens with similar uses have similar lists. The list of {word} begins with "
        "{numbers}.",
        n=n,
        word=machine.looked_at(book),
        numbers=reduce(lambda a, b: a & "; " & b, first),
    )
    if "pos_embed" in book.graph.blocks:
        more = "The model adds a list for the position. So the model can use the order of tokens."
        told = told & " " & sentence(more)
    return Stop("the embedding", book.address(block.area), told)


def _stream(book: ModelBook) -> Stop:
    stages = machine.Canvas(book).stages
    begins, ends = (rounded(machine.at_token(book, b, 0), 2) for b in (stages[0], stages[-1]))
    text = (
        "From this point the list is called the residual stream of the token. The residual "
        "stream runs through the whole model. Every part of the model adds a list of numbers to "
        "the stream. On Machine, each strip of colours shows the list that one part adds at "
        "{word}. The first number of the stream is {begins} at the start, and {ends} at the end."
    )
    return Stop(
        "the residual stream",
        _start_of(machine.SHEET),
        sentence(text, word=machine.looked_at(book), begins=begins, ends=ends),
    )


# --- the parts that add to it ---------------------------------------------------------------


def _attention(book: ModelBook) -> Stop:
    heads = [head for heads in machine.Canvas(book).layers.values() for head in heads]
    told = sentence(
        "Attention lets a token read information from earlier tokens."
        if book.plan.continues
        else "Attention lets a token read information from the other tokens."
    )
    head = machine.sharpest(book, heads)
    more = sentence(
        "A layer can have several heads, which work side by side. A head divides the attention of "
        "a token among the tokens that it can read. These shares sum to 100 % and form the pattern "
        "of the head. With {head}, {look}. The head multiplies the values of the tokens by their "
        "shares, and adds the sum to the stream. A layer is one round of the computation. "
        "Layers and heads are counted from 0: {head} is number {number} in layer {layer}.",
        head=head_of(head),
        number=str(machine.head_number(head)),
        layer=str(head.layer),
        look=machine.look(book, head),
    )
    return Stop("attention and its heads", _start_of("Heads"), told & " " & more)


def _cross(book: ModelBook) -> Stop:
    heads = [head for heads in machine.Canvas(book).heads(SOURCE).values() for head in heads]
    head = machine.sharpest(book, heads)
    told = sentence(
        "Cross attention connects the answer to the source sentence. A token of the answer asks "
        "with a query. The head reads the source tokens from the last layer of the encoder. With "
        "{head}, {look}.",
        head=head_of(head),
        look=machine.look(book, head),
    )
    return Stop("cross attention", book.address(head.area), told)


def _mlps(book: ModelBook) -> list[Block]:
    """The output of each MLP."""
    return [b for b in book.graph if b.leaf == "mlp_out" and b.layer is not None and not b.passes]


def _mlp(book: ModelBook) -> Stop:
    found = _mlps(book)
    told = sentence(
        "An MLP works on each token separately. Each of its {d_mlp} hidden cells detects "
        "something in the stream, and then adds a vector. Attention and an MLP form one layer. "
        "Number of layers in this model: {n_layers}.",
        d_mlp=worded("{n:,}", n=book.model.spec.d_mlp),
        n_layers=book.model.spec.n_layers,
    )
    canvas = machine.Canvas(book)
    names = zip(stage_names(book.graph, canvas.stages), canvas.stages, strict=True)
    at = [k for k, (name, b) in enumerate(names) if name == said(f"blocks.{b.layer}.mlp")]
    if book.views.stages and at:
        more = sentence(
            "Before the first MLP, the model’s best guess is {before}. Right after the first "
            "MLP, the best guess is {after}.",
            before=machine.guess(book, at[0] - 1),
            after=machine.guess(book, at[0]),
        )
        told = told & " " & more
    return Stop("the MLP", book.address(found[0].area), told)


# --- what comes of it -----------------------------------------------------------------------


def _logits(book: ModelBook) -> Stop:
    logits = word_columns.words(book).logits
    told = sentence(
        "At the end, the model compares the stream of {word} with a vector for every class. The "
        "result is a score for each class, called the logit. The lowest logit is {least}. The "
        "highest logit is {most}, for {first}."
        if book.plan.gives in CLASSES
        else "At the end, the model compares the stream of {word} with every token of the "
        "vocabulary. The result is a score for each token, called the logit. The lowest "
        "logit is {least}. The highest logit is {most}, for {first}.",
        word=machine.looked_at(book),
        least=rounded(MIN(logits), 1),
        most=rounded(MAX(logits), 1),
        first=quote(ranking.ranked(book)[0][0]),
    )
    return Stop("logits", book.address(book.graph["logits"].area), told)


def _temperature(book: ModelBook) -> Stop:
    words, live, _ = ranking.ranked(book)
    text = (
        "The model divides the logits by the temperature, which is now {heat}. Softmax then "
        "turns the logits into probabilities: no probability is below 0, and the sum is 100 %. A "
        "temperature below 1 favours the most likely token. A temperature above 1 favours the "
        "other tokens. The probability of {word} is now {chance}."
    )
    heat = book.graph["temperature"][0, 0]
    told = sentence(text, heat=heat, word=quote(words[0]), chance=percent(live[0]))
    if book.plan.generates:
        more = (
            "The model adds the chosen token to the sentence. Then the model computes everything "
            "again for the next token."
        )
        told = told & " " & sentence(more)
    return Stop(
        "probability and temperature",
        _start_of("Sampling" if "Sampling" in book.sheets else PLAY),
        told,
    )


def _vector(book: ModelBook) -> Stop:
    block = book.graph["vector"]
    told = sentence(
        "At the end, the model combines the streams of all tokens into one list of {n} numbers. "
        "This list is the vector of the sentence. Every sentence, long or short, becomes a point "
        "in the same space.",
        n=block.shape[1],
    )
    return Stop("the sentence's vector", book.address(block.area), told)


def _cosine(book: ModelBook) -> Stop:
    text = (
        "The cosine of two vectors compares two sentences. The cosine is 1 for the same "
        "direction, and 0 at a right angle. For the two sentences on Play, the cosine is "
        "{cosine}."
    )
    return Stop(
        "the cosine", _start_of(PLAY), sentence(text, cosine=rounded(book.graph["cosine"][0, 0], 3))
    )


def _change(book: ModelBook) -> Stop:
    told = sentence("These cells do not only show the model. The cells compute the model.")
    if ATTRIBUTION in book.sheets and book.plan.layers:
        names, leads = attribution.leads(book)
        more = sentence(
            "The part that favours {word} most over {rival} is {part}. This part adds {share} to "
            "the lead.",
            word=quote(book.graph["look.target"][0, 0]),
            rival=quote(book.graph["look.rival"][0, 0]),
            part=entry(names, MATCH(MAX(leads), leads, 0), 1),
            share=rounded(MAX(leads), 2),
        )
        told = told & " " & more
    sheet = SWITCHES if SWITCHES in book.sheets else PLAY
    if sheet == SWITCHES:
        off = (
            "On Switches, type ‘0’ to turn a part off. Play shows the answer of the model "
            "without this part."
        )
        told = told & " " & sentence(off)
    end = "Type over any blue number. All cells that depend on this number change."
    return Stop("change it", _start_of(sheet), told & " " & sentence(end))
