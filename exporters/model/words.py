"""The meaning of each block in a few words, for headings and the index."""

from collections.abc import Sequence

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.gradient import GAIN
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.cells.name import ENCODER, TURNED
from cellformer.engine.learning import adam, optimizers
from cellformer.engine.studies import lens
from cellformer.engine.studies.addition import additions
from cellformer.engine.studies.part_names import said

BY_HAND = (
    "Its weights were set by hand to show each step, not trained on texts: expect no sensible "
    "sentence of it."
)
MEANING = {
    "tokens": "the prompt, as ids",
    "shift": "what is added to every pixel",
    "patches": "the pixels of each patch, as the model reads them",
    "patch_embed": "each patch's vector, a linear map of its pixels",
    "class_token": "the vector of [CLS], the token that the class is read from",
    "is_class": "1 for [CLS], 0 for patches",
    "patch": "the patch of each token; [CLS] has none, and counts as 0",
    "positions": "the place of each token",
    "W_E": "embedding: one vector per word",
    "W_pos": "one vector per position",
    "W_U": "unembedding: one column per word",
    "queries": "the posited query, and each word's own vector",
    "clock": "sines and cosines of each position",
    "frequency": "how fast each pair of features rotates with position",
    "factor": "what every cosine and sine is multiplied by",
    "sign": "one feature of a pair rotates forward, one back",
    "cos": "cosine of position times frequency",
    "sin": "sine of position times frequency, signed",
    "rot_q": "query, rotated by its position; ~ is the partner feature",
    "rot_k": "key, rotated by its position; ~ is the partner feature",
    "W_gate": "MLP weights: gate",
    "gate": "how far each hidden cell opens",
    "act": "the gate, after its activation function",
    "q_norm": "gain of the query norm",
    "k_norm": "gain of the key norm",
    "embed": "each token's vector, looked up",
    "word": "each token's vector, before scaling or projection",
    "W_project_E": "embedding: from the size of a word's vector to the stream's",
    "projected": "each token's vector, in the stream's size",
    "W_project_U": "unembedding: from the stream's size to that of a word's vector",
    "sqrt_d_model": "what each token's vector is multiplied by",
    "mask": "the id of masked tokens",
    "is_mask": "1 for masked tokens",
    "masked": "the same where there is a token",
    "seen_in_training": "the share of tokens that had a vector in training",
    "compensation": "what the vectors of unmasked tokens are multiplied by",
    "speed": "how fast each pair of features rotates, as the model's file has it",
    "twice": "each pair's place among a head's features",
    "enters": "how much of a token enters the convolution",
    "leaves": "how much of the convolution’s result leaves it",
    "W_enters": "weights: what enters the convolution",
    "W_leaves": "weights: what leaves the convolution",
    "conv_out": "what the convolution writes into the stream",
    "reach": "how far below the best a score is near it, in parts of the larger one",
    "left": "scores of the experts that are left; very low for those chosen before",
    "best": "the largest score that is left",
    "near": "1 for scores that are hardly below the best",
    "share_of_near": "shares of these: they sum to 1",
    "pos_embed": "each position's vector, looked up",
    "segments": "0 for the first text, 1 for a second one in the same prompt",
    "W_segment": "one vector per segment",
    "segment_embed": "each segment's vector, looked up",
    "embed_sum": "the sum of the embeddings of a token",
    "attention_mask": "1 where there is a token; nothing attends to a 0",
    "bound": "queries, keys and values stay between it and minus it",
    "beta": "how much queries grow beyond the length of training",
    "trained": "the length of training, in tokens",
    "growth": "what each token’s query is multiplied by",
    "grown_q": "query, larger beyond the length of training",
    "W_latent": "weights: from the stream to the latent of keys and values",
    "W_of_query": "weights: from the stream to the latent of queries",
    "W_shared": "weights: the features of keys that turn, alike for all heads",
    "fixed_eps": "keeps the latent’s divisor above zero; no config has it",
    "short": "the latent, before its norm",
    "shared_k": "the features of keys that turn, alike for all heads",
    "own_k": "the features of keys that do not turn",
    "placed_k": "the same in their columns of the key; 0 in the others",
    "still_columns": "which columns of a key do not turn",
    "turned_columns": "which columns of a key turn",
    "suits": "how well each expert suits the token, from 0 to 1",
    "b_choice": "biases that count in choosing experts, and not in their shares",
    "ranked": "what experts are ranked by",
    "in_open": "the same, very low outside the chosen groups",
    "share_of_chosen": "shares of the chosen experts: they sum to 1",
    "above": "what keeps the scores of groups apart",
    "apart": "scores, with each group’s above those of the group before it",
    "rank_in_all": "how many experts come before it, those of groups above included",
    "others": "minus the experts of groups that come before",
    "within": "how many experts of its own group come before it",
    "n_counted": "how many experts count in a group’s score",
    "two": "scores of the experts that count; 0 for the others",
    "member": "1 where an expert is in a group",
    "members": "the same, a row for each group",
    "open": "1 for the chosen groups",
    "open_to": "1 for experts in chosen groups",
    "n_open": "how many groups are chosen",
    "sink": "a score that belongs to no token, and takes its share of attention",
    "alpha": "how sharply an expert’s gate opens",
    "limit": "what an expert’s gate and its hidden layer stay within",
    "B_out": "biases of what experts write: a row for each",
    "biases": "the chosen experts’ biases, by their shares",
    "b_router": "router biases: one for each expert",
    "alpha_p": "the activation function’s first weight: how it rises",
    "alpha_n": "the activation function’s second weight: how it falls",
    "rise": "ln(1 + e^x) of the first weight, which is above 0",
    "fall": "ln(1 + e^x) of the second weight, which is above 0",
    "part": "the weight of each token in the mean",
    "present": "the vectors; very low where there is no token",
    "max": "the maximum of each feature over the tokens",
    "first": "the first token's vector",
    "which": "the token that stands for the sentence",
    "unit": "divided by its length",
    "vector": "the sentence as one vector",
    "length": "how long the sentence's vector is",
    "cosine": "how alike the two vectors point: 1, the same way; 0, at right angles",
    "resid_pre": "the residual stream before the block",
    "resid_mid": "the residual stream after attention",
    "resid_post": "the residual stream after the block",
    "resid_final": "the final residual: the query that is put to the vocabulary",
    "sqrt_d_head": "what scores are divided by",
    "scale": "what scores are multiplied by",
    "W_Q": "weights: query",
    "W_K": "weights: key",
    "W_V": "weights: value",
    "W_O": "weights: out, back into the stream",
    "q": "query: what am I looking for?",
    "k": "key: what do I offer to be matched against?",
    "v": "value: what do I carry, if matched?",
    "scores": "how well each query matches each key; the future is blank",
    "row_max": "the largest score, subtracted before the exponential",
    "exp": "exponential",
    "row_sum": "the sum of the exponentials",
    "pattern": "who attends to whom; a token’s shares sum to 1",
    "z": "values, weighted by the pattern",
    "result": "what this head writes into the stream",
    "attn_out": "what attention writes into the stream",
    "cross_out": "what cross attention writes into the stream",
    "resid_cross": "the residual stream after cross attention",
    "bucket": "how far apart query and key are, sorted into buckets",
    "bias": "what each query and key are given for their distance",
    "added": "what is written, as it is added to the stream",
    "read": "the stream, as the vocabulary reads it",
    "multiplier": "the factor that every cell is multiplied by",
    "W_in": "MLP weights: expand",
    "W_out": "MLP weights: contract",
    "pre": "hidden layer, before the activation function",
    "post": "hidden layer, after the activation function",
    "W_router": "router weights: one column per expert",
    "router": "how well each expert suits the token",
    "share_of_all": "the same as shares of all experts: they sum to 1",
    "number": "experts' numbers: of equals the first is chosen",
    "rank": "how many experts come before it",
    "n_chosen": "how many experts work at each token",
    "chosen": "shares of those that were chosen; 0 for the others",
    "total": "what the chosen experts have together",
    "share": "this expert's share at each token",
    "W_share": "weights: the expert's share",
    "mlp_out": "what the MLP writes into the stream",
    "mean": "mean over features",
    "eps": "keeps the deviation above zero",
    "normalized": "the same length for every token, before the gain",
    "w": "gain",
    "b": "bias",
    "out": "normalised, what is read next",
    "logits": "one score per word of the vocabulary",
    "class_logits": "one score per class, for each token",
    "query_length": "multiplies the query: certainty, not direction",
    "temperature": "below 1 sharper, above 1 flatter",
    "probs": "probabilities of the next word; a token’s sum to 1",
    "switch": "1 = on, 0 = off",
    "on": "its own switch times that for all heads",
    "average": "its average output: a constant",
    "off": "what is written instead while it is off",
    "mean_ablation": "0: zero ablation; 1: mean ablation",
    "position": "the token that Play, Lens and Attribution look at",
    "target": "the word to track, as its id",
    "rival": "the word that the target is compared with, as its id",
    "x": "the residual stream at the position",
    "last": "the token at the position: what is read out",
    "direction": "the direction of a logit: the word's unembedding",
    "mapped": "the direction before the projection to the size of word vectors",
    "gained": "the direction before the norm's gain",
    "credit": "share of a word's logit",
    "turned": "the transpose",
    "by": "the divisors of all norms on the way",
    "cap": "scores are softly capped at this value",
    "of_content": "scores before what distance adds or takes",
    "slope": "each head's penalty for each token of distance",
    "place": "where each token stands for each head, in units of score",
    "uncapped": "scores before they are capped",
    "score": "the word's score before it is capped",
    "numbers": "the ids in order, to look one up",
    "method": "the optimizer's number: 0 SGD, 1 momentum, 2 Adam",
    "step": "which step this is, from 1",
    "loss": "the mean surprise of the words that follow, in nats",
    "bits": "how many bits weights are rounded to; 0: none",
    "most": "the largest integer of so many bits; 0: weights stay as they are",
    "quant_scale": "what integers are multiplied by, for each line of weights",
    "used": "the weights as they are read",
    "lora_A": "the adapter's first thin matrix",
    "lora_B": "the adapter's second thin matrix",
    "merge": "1: weights are read with the adapter; 0: as they are",
    "take": "1: the other sentence’s row; 0: its own",
    "row": "the logits at the position",
    "of_target": "the target’s logit",
    "of_rival": "the rival’s logit",
    "lead": "the target’s logit less the rival’s",
    "rows": "1: the receiver’s rows that read the path",
    "own": "as computed, before what changes it",
    "capped_by": "how many times larger the score is than capped",
    "low": "the few numbers that the sizes of steps come through",
    "step_in": "sizes of steps, before they are made positive",
    "rate": "how fast each number of the state fades: below 0",
    "A_log": "weights: how fast the state fades, as a logarithm",
    "B": "how much of the token goes into the state",
    "C": "what the token reads of the state",
    "D": "weights: how much of the input passes by the state",
    "state": "what each channel carries from token to token: a row reads the row before it",
    "conv": "each channel’s own token and those before it, by weights",
    "u": "what goes into the state, and past it",
    "W_conv": "weights: convolution; the last row is of the own token",
    "W_x": "weights: into the channels",
    "W_low": "weights: to the few numbers that steps come through",
    "W_step": "weights: sizes of steps",
    "W_B": "weights: what goes into the state",
    "W_C": "weights: what is read of the state",
    "opened": "how far each channel’s gate is open",
    "gated": "what the channels hold, as far as their gates are open",
    "step_of_token": "what the size of a step follows from, before its bias",
    "unlimited": "sizes of steps, before their limits",
    "least_step": "the least that a step can be",
    "most_step": "the most that a step can be",
    "B_in": "what goes into the state, before the convolution",
    "C_in": "what is read of the state, before the convolution",
    "ssm_out": "what the state space model writes into the stream",
    "time_out": "what time mixing writes into the stream",
    "mix_k": "weights: how much of a key is of the own token; the rest is of the one before it",
    "mix_v": "weights: how much of a value is of the own token; the rest is of the one before it",
    "mix_r": "weights: how much of a gate is of the own token; the rest is of the one before it",
    "mixed_k": "the own token and the one before it, mixed for keys",
    "mixed_v": "the own token and the one before it, mixed for values",
    "mixed_r": "the own token and the one before it, mixed for gates",
    "W_R": "weights: how far each gate is open",
    "r": "how far each gate is open, before the sigmoid",
    "received": "how far each gate is open, from 0 to 1",
    "decay": "weights: how fast what came before counts less, as a logarithm",
    "fade": "what is added to the exponents of all before, at each token: below 0",
    "bonus": "weights: how much more the own token counts, as a logarithm",
    "starts": "1 for the first token, before which nothing counts",
    "top": "the largest exponent so far",
    "top_before": "the largest exponent up to the token before",
    "sum": "values so far, by how much they count: a row reads the row before it",
    "counted": "how much all so far counts: a row reads the row before it",
    "top_of_both": "the larger exponent, of those before or of the own token",
    "past": "what sums of those before are multiplied by",
    "now": "how much the own token counts",
    "sum_of_both": "values of all up to the token, by how much they count",
    "counts_of_both": "how much all up to the token counts",
    "value": "what the MLP would write if its gate were open",
    "sqrt_d_key": "what queries of length 1 are divided by",
    "new_q": "queries, of the token alone",
    "new_k": "keys, of the token alone",
    "new_v": "values, of the token alone",
    "W_conv_q": "weights: convolution of queries; the last row is of the own token",
    "W_conv_k": "weights: convolution of keys; the last row is of the own token",
    "W_conv_v": "weights: convolution of values; the last row is of the own token",
    "conv_q": "queries of the own token and those before it, by weights",
    "conv_k": "keys of the own token and those before it, by weights",
    "conv_v": "values of the own token and those before it, by weights",
    "long_q": "the same, after the activation function",
    "long_k": "the same, after the activation function",
    "q_eps": "keeps the query’s length above zero; no config has it",
    "k_eps": "keeps the key’s length above zero; no config has it",
    "q_length": "how long each query is",
    "k_length": "how long each key is",
    "unit_q": "queries of length 1",
    "z_norm": "gain of the norm of what is read",
    "to_replace": "how much of what a key reads is replaced, before the sigmoid",
    "W_replaced": "weights: how much of what a key reads is replaced",
    "replaced": "how much of what a key reads is replaced, from 0 to 1",
    "pace_in": "how fast the memory fades at a token, before it is made positive",
    "W_pace": "weights: how fast the memory fades at a token",
    "pace": "how fast the memory fades at a token",
    "fades": "what the memory keeps at a token, as a logarithm: below 0",
    "faded": "the sum of these, up to the token",
    "overlap": "how much of what an earlier token wrote this token’s key reads, and replaces",
    "offered": "values, as far as they are to replace something",
    "written": "what each token writes: its value, less what its key reads already",
    "reads": "how much of what each token wrote a later token’s query reads",
    "recalled": "what the query reads of all that was written",
    "W_opens": "weights: how far each number of the head’s output opens",
    "opens": "how far each number of the head’s output opens, before the activation function",
    "opening": "how far each number of the head’s output opens",
    "opening_on": "the same; 0 while the head is off",
    "mixed": "values, weighted by the pattern, before the gate",
}
OF_CONVOLUTION = {  # the blocks of a short convolution, where other parts have the same names
    "x": "what is convolved, before its gate",
    "u": "what enters the convolution",
    "z": "each feature’s own token and those before it, by weights",
    "gated": "what leaves the convolution",
    "W_out": "weights: out, back into the stream",
}
IN_FULL = {  # by the whole name
    f"{ENCODER}.tokens": "the source sentence, as ids",
    f"{ENCODER}.resid_final": "the encoder’s last residual",
    f"{ENCODER}.ln_final.out": "normalised: what the decoder’s cross attention reads",
    "adapter.scale": "what the adapter says: alpha / rank, or alpha / sqrt(rank)",
    "adapter.factor": "what products of thin matrices are multiplied by",
    "pass.total": "the sum of the losses of this pass, before this step",
    "pass.next": "the sum of the losses of this pass, with this step's",
    "name.start": "where each letter begins on a line of probabilities",
    "name.chance": "the random number of each letter",
    "name.picked": "the letter on which the random number falls, as its id",
    "name.length": "how many letters come before the first <BOS>",
    "name.drawn": "how many random numbers the name takes",
    "used": "how many random numbers earlier names took",
    "next.used": "how many random numbers are taken after this name",
    "points": "the mean losses of steps, a point of the curve each",
    "next.points": "the same, with the point that this step completes",
    "settled": "sums of what each state holds: they read it before the step does",
}
OF_LOSS = {  # the blocks of a loss, by their names in it
    "targets": "the word that follows each token, as its id",
    "share": "the weight of each token in the mean",
    "numbers": "the words' ids",
    "chosen": "1 for the word that came, 0 for the others",
    "score": "the score of the word that follows",
    "of_token": "the surprise of the word that follows: -ln of its probability",
    "counted": "the surprise, times the word’s share of the loss",
}
OF_SSM = {  # the blocks of a state space model, where other parts have the same names
    "x": "what the channels are given",
    "step": "the size of each channel’s step: the larger, the faster it forgets and learns",
    "gate": "the gates, before the activation function",
    "left": "how much is left of the states of the token before",
    "added": "the input, times the size of the step",
    "z": "what the channels’ states give, and the input past them",
    "W_out": "weights: out, back into the stream",
}
OF_TIME = {  # the blocks of time mixing, where other parts have the same names
    "k": "how much a token counts for each channel, as a logarithm",
    "v": "what a token carries for each channel",
    "z": "the mean of all values up to the token, by how much they count",
    "gated": "the same, as far as the gates are open",
    "W_out": "weights: out, back into the stream",
}
OF_STATE = {  # what an optimizer keeps of a weight's gradients, by the first word of its name
    "speed": "the velocity that earlier steps left: a decaying sum of their gradients",
    "size": "the second moment that earlier steps left: a mean of gradients' squares",
    "m": "the running mean of the gradient that earlier steps left",
    "v": "the running mean of the gradient's square that earlier steps left",
}
AXES = {"token": "tokens", "token_b": "tokens", "vocab": "words", "vocab_out": "words"}
AXES |= {"source": "source tokens"}
AXES |= {"n_ctx": "positions", "place": "positions", "head": "heads"}


def meaning(block: Block, gradient_of: str = "") -> str:
    """A block's meaning in a few words, in the language of what is built."""
    told = _meaning(block, gradient_of)
    return told if isinstance(told, AsIs) else worded(told)


def _meaning(block: Block, gradient_of: str) -> str:
    """A block's meaning in a few words: by its whole name if leaf names are ambiguous (a norm's
    `scale` is not attention's), else by its leaf. `gradient_of` names the number that gradients
    belong to."""
    if block.kind == "gradient":
        return of_backward(block, gradient_of)
    for meanings in (IN_FULL, *(each.meanings for each in additions())):
        if block.name in meanings:
            return meanings[block.name]
    if block.op and block.op.function.__module__ in (adam.__name__, optimizers.__name__):
        return of_optimizer(block)
    if block.part in OF_STATE:
        return OF_STATE[block.part]
    of_part = {"loss": OF_LOSS, "time": OF_TIME, "ssm": OF_SSM, "conv": OF_CONVOLUTION}
    for part, meanings in of_part.items():
        if part in block.inside and block.leaf in meanings:
            return meanings[block.leaf]
    return _of_leaf(block)


def _of_leaf(block: Block) -> str:
    """A block's meaning by its leaf."""
    if block.leaf.isdigit():
        return MEANING.get(block.inside[-1], "")
    if block.name.endswith("distance.W"):
        return "the bias of each bucket of distances, a column for each head"
    if block.leaf == "scale" and block.inside[-1:] not in (("attn",), ("cross",)):
        return "what each token is divided by"
    if block.leaf == "chosen" and "router" not in block.inside:
        return "what the chosen experts write together"
    if block.leaf == "score" and block.part == "mlp":
        return "the expert's share, before the sigmoid"
    if block.leaf == "on" and block.part == "mlp":
        return "its own switch times that for all experts"
    if block.leaf.startswith("b_"):
        return "bias"
    return MEANING.get(block.leaf, block.leaf.replace("_", " "))


def of_optimizer(block: Block) -> str:
    """The meaning of a block of an optimizer's step: its op's docstring."""
    assert block.op and block.op.function.__doc__
    told = " ".join(block.op.function.__doc__.split()).removesuffix(".")
    return told[:1].lower() + told[1:]


def of_backward(block: Block, gradient_of: str) -> str:
    """The meaning of a block of the backward pass."""
    if TURNED in block.passes:
        return "the transpose, so that a product’s two lines run the same way"
    if block.leaf == GAIN:
        return "what the lead gains by the gradient with the other sentence’s row"
    if block.leaf.startswith("part"):
        return "an intermediate step of the backward pass"
    return worded(
        "how {gradient_of} changes with {own}", gradient_of=worded(gradient_of), own=block.forward
    )


def shape(block: Block, turned: bool = False) -> str:
    """A block's shape, in numbers and in words: `[3 tokens x 5 d_head]`. If `turned`, it is the
    shape on the sheet; for a weight, the text then says transposed."""
    sides = [
        f"{n} {worded(AXES[axis]) if axis in AXES else axis}" if axis else str(n)
        for n, axis in zip(block.shape, block.axes, strict=True)
    ]
    text = AsIs(f"[{' × '.join(reversed(sides) if turned else sides)}]")
    return transposed(text) if turned and block.kind == "weight" else text


def transposed(text: str) -> str:
    """The note on a weight whose axes are swapped: its file has [in, out]."""
    return worded("{text}, transposed", text=text)


SUBLAYERS = ("attn_out", "cross_out", "conv_out", "time_out", "mlp_out")


def stage_names(graph: Graph, stages: Sequence[Block]) -> list[str]:
    """The name of each stage of the residual stream, by what was added last: `attention 0`,
    `MLP 0`; both together are a layer."""
    sums = [stage for stage in stages[1:] if not _extra(stage)]
    layers, names = [stage.layer for stage in sums], {}
    for k, layer in enumerate(layers):
        leaves = [leaf for leaf in SUBLAYERS if f"blocks.{layer}.{leaf}" in graph.blocks]
        at_once = len(leaves) > layers.count(layer)
        leaf = leaves[layers[:k].count(layer)] if leaves and not at_once else ""
        names[sums[k].name] = said(f"blocks.{layer}.{leaf}".removesuffix("."))
    return [
        worded("embedding"),
        *(names.get(stage.name) or worded(_extra(stage)) for stage in stages[1:]),
    ]


def plain(writer: str) -> str:
    """The name of a writer to the stream: a head, an MLP, a bias."""
    return worded("ln_final bias") if writer == "ln_final.b" else said(writer)


def _extra(stage: Block) -> str:
    """The part of an addition that a stage of the stream added last; "": the model's own did."""
    while stage.op in lens.NORMS:
        stage = stage.operands[0][2]
    parts = {operand.part for _, _, operand in stage.operands}
    return next((each.part for each in additions() if each.part and each.part in parts), "")
