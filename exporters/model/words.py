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
    "A person set the weights to show each step. The model was not trained: its sentences make "
    "no sense."
)
MEANING = {
    "tokens": "prompt as token ids",
    "shift": "the number added to every pixel",
    "patches": "the input pixels of each patch",
    "patch_embed": "the vector of each patch, a linear map of the pixels",
    "class_token": "the vector of [CLS], the token that gives the class",
    "is_class": "1 for [CLS], 0 for patches",
    "is_patch": "1 for patches, 0 for [CLS]",
    "W_mean": "weights: from the mean of all patches to each class",
    "of_mean": "the part of each logit that comes from the mean of all patches",
    "patch": "the patch of each token; [CLS] has no patch and shows 0",
    "positions": "the position of each token",
    "W_E": "embedding: one vector per word",
    "W_pos": "one vector per position",
    "W_U": "unembedding: one column per word",
    "queries": "the assumed query, and a vector for each word",
    "clock": "sines and cosines of each position",
    "frequency": "how fast each pair of features rotates with position",
    "factor": "the factor of every cosine and sine",
    "sign": "the sign of each feature’s rotation: forward or back",
    "cos": "cosine of (position × frequency)",
    "sin": "sine of (position × frequency), with its sign",
    "rot_q": "query, rotated by position; ~ marks the second feature of a pair",
    "rot_k": "key, rotated by position; ~ marks the second feature of a pair",
    "W_gate": "MLP weights: gate",
    "gate": "gate value of each hidden cell",
    "act": "gate, after the activation function",
    "q_norm": "gain of the query norm",
    "k_norm": "gain of the key norm",
    "embed": "each token’s embedding vector",
    "word": "each token’s embedding, before scaling or projection",
    "W_project_E": "embedding: from the size of word vectors to the size of the stream",
    "projected": "each token’s vector, in the size of the stream",
    "W_project_U": "unembedding: from the size of the stream to the size of word vectors",
    "sqrt_d_model": "the factor of each token’s vector",
    "mask": "the id of the mask token",
    "is_mask": "1 for masked tokens",
    "masked": "1 for masked tokens; 0 for padding",
    "seen_in_training": "the share of tokens that training did not mask",
    "compensation": "the factor for the vectors of unmasked tokens",
    "speed": "how fast each pair of features rotates, from the model’s file",
    "twice": "the number of each pair among a head’s features",
    "enters": "how much of a token enters the convolution",
    "leaves": "how much of the convolution’s result is kept",
    "W_enters": "weights: input gate of the convolution",
    "W_leaves": "weights: output gate of the convolution",
    "conv_out": "convolution output, added to the stream",
    "reach": "how near a score must be to the best score, as a fraction of the larger score",
    "left": "scores of all experts; very low for experts that are already chosen",
    "best": "the largest remaining score",
    "near": "1 for scores that are near the best score",
    "share_of_near": "softmax of scores near the best",
    "n_rows": "number of rows in the table of a layer’s own embeddings",
    "grown": "a layer’s own embedding of each token, times a factor",
    "seen": "linear map of the token’s embedding, for one layer",
    "W_seen": "weights: from the token’s embedding to the layer’s own embedding",
    "shrunk": "the same numbers times a small factor",
    "both": "sum of the layer’s own embedding and the mapped embedding",
    "own_gate": "gate of the layer’s own embedding, before the activation function",
    "W_own_gate": "weights: gate of the layer’s own embedding",
    "own_act": "gate of the layer’s own embedding",
    "own_gated": "the layer’s own embedding, times its gate",
    "own_out": "the gated own embedding, in the size of the stream",
    "W_own_out": "weights: from the layer’s own embedding to the stream",
    "resid_mlp": "the residual stream after the MLP",
    "resid_unscaled": "the residual stream before the layer’s factor",
    "layer_scalar": "the layer’s factor of the residual stream",
    "zero": "0: nothing is added to the mean square",
    "least": "smallest allowed divisor",
    "part_size": "root mean square of each token’s vector",
    "W_line": "weights of a linear map of the stream",
    "line": "linear map of the stream",
    "divisor": "root mean square, at least the smallest allowed divisor",
    "ratio": "factor that gives both vectors the same size",
    "W_parts": "weights for the mix of the stream’s parts",
    "parts_in": "the mix of the stream’s parts, before tanh",
    "parts": "the mix of the stream’s parts, from -1 to 1",
    "W_part_shares": "weights for the share of each part in a predicted part",
    "part_shares": "share of each part of the stream in this predicted part",
    "predicted": "this part of the stream, as predicted from all parts",
    "W_move": "weights for how far each part of the stream moves",
    "move": "how far each part of the stream moves, less 1",
    "corrected": "this part of the stream, after its correction",
    "W_narrow": "weights: from the stream to a few features",
    "narrow": "a few features of the stream",
    "W_wide": "weights: from a few features back to the stream",
    "wide": "the few features, in the size of the stream",
    "deviation": "standard deviation of the gates of a token",
    "deviations": "how many standard deviations above the mean the bound is",
    "largest": "how far each gate is above the bound; 0 below it",
    "resid_both": "the active part of the stream plus attention and the map beside it",
    "resid_computed": "the active part of the stream, as the layer computes it",
    "resid_gained": "the active part of the stream, times its gain",
    "part_gain": "gain of the active part of the stream",
    "resid_sum": "sum of all parts of the stream",
    "W_between": "weights of the first of two linear maps of the sentence’s vector",
    "between": "the sentence’s vector between two linear maps",
    "pos_embed": "each position’s vector, from a table",
    "segments": "0 for the first text, 1 for a second text in the same prompt",
    "W_segment": "one vector per segment",
    "tasks": "the number of the task: 0, the first one",
    "W_task": "one vector per task",
    "task_embed": "the task’s vector, from a table",
    "segment_embed": "each segment’s vector, from a table",
    "embed_sum": "the sum of the embeddings of a token",
    "attention_mask": "1 for a token, 0 for padding; no token reads padding",
    "bound": "limit (±) of queries, keys and values",
    "beta": "growth rate of queries beyond the training length",
    "trained": "the training length, in tokens",
    "growth": "the factor of each token’s query",
    "grown_q": "query, larger beyond the training length",
    "W_latent": "weights from the stream to the latent vector of keys and values",
    "W_of_query": "weights from the stream to the latent vector of queries",
    "W_shared": "weights for rotated key features, which all heads share",
    "fixed_eps": "keeps the latent’s divisor above 0; a constant, not in the config file",
    "short": "latent vector before its norm",
    "shared_k": "rotated key features, which all heads share",
    "own_k": "key features that are not rotated",
    "placed_k": "key features in their columns of the key; 0 in the other columns",
    "placed_q": "query, with the rotated features first",
    "all_columns": "the column of each query feature",
    "still_columns": "key columns that are not rotated",
    "turned_columns": "rotated key columns",
    "suits": "score of each expert for the token, from 0 to 1",
    "b_choice": "biases for the choice of experts, not for the experts’ shares",
    "ranked": "scores that rank the experts",
    "in_open": "expert scores; very low outside the chosen groups",
    "share_of_chosen": "shares of the chosen experts, with sum 1",
    "above": "offsets added to scores, to separate the groups",
    "apart": "scores plus an offset, which puts each group above the previous group",
    "rank_in_all": "rank of the expert among all groups, from 0",
    "others": "minus the number of experts in higher groups",
    "within": "rank of the expert in the group, from 0",
    "n_counted": "how many experts count for a group’s score",
    "two": "scores of experts that count for a group; 0 for other experts",
    "member": "1 if the expert is in the group",
    "members": "1 if an expert is in the group, 0 if not",
    "open": "1 for the chosen groups",
    "open_to": "1 if the expert’s group is chosen",
    "n_open": "number of chosen groups",
    "sink": "extra score that belongs to no token, but also gets attention",
    "alpha": "how steep the gate of an expert is",
    "limit": "limit of an expert’s gate and hidden layer",
    "B_out": "output biases of the experts, one row per expert",
    "biases": "chosen experts’ biases, times their shares",
    "b_router": "router biases: one for each expert",
    "alpha_p": "the activation function’s first weight, for inputs above 0",
    "alpha_n": "the activation function’s second weight, for inputs below 0",
    "rise": "ln(1 + e^x) of the first weight, always above 0",
    "fall": "ln(1 + e^x) of the second weight, always above 0",
    "part": "the weight of each token in the mean",
    "present": "the tokens’ vectors; very low numbers for padding",
    "max": "the maximum of each feature over all tokens",
    "first": "the first token's vector",
    "which": "the token that represents the sentence",
    "unit": "vector of length 1",
    "vector": "the vector of the sentence",
    "length": "the length of the sentence’s vector",
    "cosine": "similarity of the two vectors: 1 for the same direction, 0 for a right angle",
    "resid_pre": "the residual stream before the block",
    "resid_mid": "the residual stream after attention",
    "resid_post": "the residual stream after the block",
    "resid_final": "the final residual stream, which is compared with every word",
    "sqrt_d_head": "the divisor of the scores",
    "scale": "the factor of the scores",
    "W_Q": "weights: query",
    "W_K": "weights: key",
    "W_V": "weights: value",
    "W_O": "output weights, into the stream",
    "q": "query: what am I looking for?",
    "k": "key: what do I offer to a query?",
    "v": "value: what do I pass on?",
    "scores": "match of each query with each key; later tokens are blank",
    "row_max": "the largest score, subtracted before the exponential",
    "exp": "exponential",
    "row_sum": "the sum of the exponentials",
    "pattern": "attention weights; the weights of a token sum to 1",
    "z": "sum of values × attention weights",
    "result": "output of this head, added to the stream",
    "attn_out": "output of attention, added to the stream",
    "cross_out": "output of cross attention, added to the stream",
    "resid_cross": "the residual stream after cross attention",
    "bucket": "bucket (range of distances) for each query and key",
    "bias": "number added to a score; depends on the distance of query and key",
    "added": "the output that is added to the stream",
    "read": "the stream, as input for the unembedding",
    "multiplier": "the factor of every cell",
    "W_in": "MLP weights: expand",
    "W_out": "MLP weights: contract",
    "pre": "hidden layer, before the activation function",
    "post": "hidden layer, after the activation function",
    "W_router": "router weights: one column per expert",
    "router": "score of each expert for the token",
    "routed": "the normed stream times a constant, as the router reads it",
    "expert_scale": "factor of each expert’s share",
    "scaled_share": "share of each expert, times the expert’s factor",
    "share_of_all": "shares of all experts; they sum to 1",
    "number": "expert numbers; of equal scores, the lower number wins",
    "rank": "rank of the expert, from 0",
    "n_chosen": "number of experts for each token",
    "chosen": "shares of the chosen experts; 0 for the other experts",
    "total": "sum of the chosen experts’ shares",
    "total_above_0": "sum of the chosen experts’ shares, plus a tiny number",
    "share": "this expert's share at each token",
    "W_share": "weights for the expert’s share",
    "mlp_out": "output of the MLP, added to the stream",
    "mean": "mean over features",
    "eps": "avoids a division by zero",
    "normalized": "each token’s vector, scaled to equal length, before the gain",
    "w": "gain",
    "b": "bias",
    "out": "normalised input of the next step",
    "logits": "one score per word of the vocabulary",
    "class_logits": "one score per class, for each token",
    "query_length": "factor of the query: changes only the certainty",
    "temperature": "below 1: more certain; above 1: less certain",
    "probs": "probabilities of the next word; the sum is 1",
    "switch": "1 = on, 0 = off",
    "on": "switch of the head × switch of all heads",
    "average": "average output, a constant",
    "off": "output that replaces a part that is off",
    "mean_ablation": "0: zero ablation; 1: mean ablation",
    "position": "the token that the sheets Play, Lens and Attribution show",
    "target": "id of the target word",
    "rival": "id of the rival, the word to compare with the target",
    "x": "the stream at the chosen position",
    "last": "the token at the position, for the readout",
    "direction": "direction of a logit: the unembedding of the word",
    "mapped": "the direction before the projection to the size of word vectors",
    "gained": "the direction before the norm's gain",
    "credit": "share of a word's logit",
    "turned": "the transpose",
    "by": "divisors of the norms before the logits",
    "cap": "smooth limit (±) of the scores",
    "of_content": "scores without the effect of distance",
    "slope": "for each head: what a score loses for each token of distance",
    "place": "position × penalty of each head, to be added to scores",
    "uncapped": "scores before the limit",
    "score": "the word’s score before the limit",
    "numbers": "ids in rising order, for look-ups",
    "method": "the optimizer's number: 0 SGD, 1 momentum, 2 Adam",
    "step": "number of this step, from 1",
    "loss": "mean surprise (loss) of the next words, in nats",
    "bits": "bits per weight after rounding; 0: no rounding",
    "most": "largest integer with this number of bits; 0: no rounding",
    "quant_scale": "scale of the integers, for each line of weights",
    "used": "the weights that the model uses",
    "lora_A": "the adapter's first thin matrix",
    "lora_B": "the adapter's second thin matrix",
    "merge": "1: weights with adapter; 0: weights without adapter",
    "take": "1: use the row of the other sentence; 0: use the row of this sentence",
    "row": "the logits at the position",
    "of_target": "the target’s logit",
    "of_rival": "the rival’s logit",
    "lead": "target’s logit minus rival’s logit",
    "rows": "1: in this row, the receiver reads the change of the path",
    "own": "computed values, before your change",
    "capped_by": "ratio of the score to the limited score",
    "low": "short vector that determines the step sizes",
    "step_in": "step sizes, before they become positive",
    "rate": "how fast each number of the state decays (always below 0)",
    "A_log": "weights: decay rate of the state, as a logarithm",
    "B": "how much of the token enters the state",
    "C": "how the token reads the state",
    "D": "weights for the input that bypasses the state",
    "state": "state of each channel, computed from the state one row above",
    "conv": "weighted sum of this and earlier tokens, per channel",
    "u": "input of the state; a copy bypasses the state",
    "W_conv": "convolution weights; the last row is for the current token",
    "W_x": "weights from stream to channels",
    "W_low": "weights for the short vector that determines step sizes",
    "W_step": "weights for step sizes",
    "W_B": "weights for the input of the state",
    "W_C": "weights for reading the state",
    "opened": "gate value of each channel",
    "gated": "output of the channels, multiplied by the gates",
    "step_of_token": "number that sets the step size, before the bias",
    "unlimited": "step sizes, before the limits",
    "least_step": "smallest allowed step size",
    "most_step": "largest allowed step size",
    "B_in": "input of the state, before the convolution",
    "C_in": "how tokens read the state, before the convolution",
    "low_in": "short vector that determines the step sizes, before its norm",
    "scaled": "the input, multiplied by a number from the config",
    "mixed_out": "sum of the outputs of attention and of the state space model",
    "ssm_out": "output of the state space model, added to the stream",
    "time_out": "output of time mixing, added to the stream",
    "mix_k": "share of this token in the keys’ input (rest: previous token)",
    "mix_v": "share of this token in the values’ input (rest: previous token)",
    "mix_r": "share of this token in the gates’ input (rest: previous token)",
    "mixed_k": "mix of this token and the token before, for keys",
    "mixed_v": "mix of this token and the token before, for values",
    "mixed_r": "mix of this token and the token before, for gates",
    "W_R": "weights for the gates",
    "r": "gate values before the sigmoid",
    "received": "gate values, from 0 (closed) to 1 (open)",
    "decay": "weights for the decay of earlier tokens, as a logarithm",
    "fade": "negative number: how much less an earlier token counts with each new token",
    "bonus": "weights: extra importance of the current token, as a logarithm",
    "starts": "1 for the first token, which has no earlier tokens",
    "top": "the largest exponent so far",
    "top_before": "the largest exponent up to the previous token",
    "sum": "weighted sum of the values so far; each row uses the row before",
    "counted": "sum of the tokens’ importance so far; each row uses the row before",
    "top_of_both": "the larger exponent, of earlier tokens or of the current token",
    "past": "factor for the sums of earlier tokens",
    "now": "importance of the current token",
    "sum_of_both": "weighted sum of all values up to the token",
    "counts_of_both": "sum of the importance of all tokens up to this token",
    "value": "output of the MLP, before the gate",
    "sqrt_d_key": "the divisor of queries of length 1",
    "new_q": "queries before the convolution",
    "new_k": "keys before the convolution",
    "new_v": "values before the convolution",
    "W_conv_q": "convolution weights of queries; the last row is for the current token",
    "W_conv_k": "convolution weights of keys; the last row is for the current token",
    "W_conv_v": "convolution weights of values; the last row is for the current token",
    "conv_q": "weighted sum of the queries of this and earlier tokens",
    "conv_k": "weighted sum of the keys of this and earlier tokens",
    "conv_v": "weighted sum of the values of this and earlier tokens",
    "long_q": "convolution result after the activation",
    "long_k": "convolution result after the activation",
    "q_eps": "keeps the query’s length above 0; a constant, not in the config file",
    "k_eps": "keeps the key’s length above 0; a constant, not in the config file",
    "q_length": "length of each query",
    "k_length": "length of each key",
    "unit_q": "queries of length 1",
    "z_norm": "gain of the norm of the memory’s output",
    "to_replace": "share of old memory that a key replaces, before the sigmoid",
    "W_replaced": "weights for the share of memory that a key replaces",
    "replaced": "share of old memory that a key replaces, from 0 to 1",
    "pace_in": "speed of forgetting at a token, before a function makes it positive",
    "W_pace": "weights for the fading speed of memory",
    "pace": "how fast memory fades at a token",
    "fades": "how much memory remains at a token, as a logarithm (below 0)",
    "faded": "sum of the memory logarithms of all tokens so far",
    "overlap": "share of an earlier token’s output that this token’s key reads and replaces",
    "offered": "values, multiplied by the share of memory to replace",
    "written": "what each token writes: the value minus the part that its key already reads",
    "reads": "share of each token’s output that a later token’s query reads",
    "recalled": "everything that the query reads from memory",
    "W_opens": "weights for the gates of the head’s output",
    "opens": "gates of the head’s output, before the activation function",
    "opening": "gates of the head’s output",
    "opening_on": "output gates; 0 if the head is off",
    "mixed": "sum of values × attention weights, before the gate",
}
OF_CONVOLUTION = {  # the blocks of a short convolution, where other parts have the same names
    "x": "convolution input, before the gate",
    "u": "input of the convolution",
    "z": "weighted sum of this and earlier tokens, per feature",
    "gated": "gated convolution output",
    "W_out": "output weights, into the stream",
}
IN_FULL = {  # by the whole name
    f"{ENCODER}.tokens": "source sentence as token ids",
    f"{ENCODER}.resid_final": "last encoder residual stream",
    f"{ENCODER}.ln_final.out": "normalised input of the decoder’s cross attention",
    "adapter.scale": "scale of the adapter: alpha / rank, or alpha / sqrt(rank)",
    "adapter.factor": "factor of the product of the thin matrices",
    "pass.total": "the sum of the losses of this pass, before this step",
    "pass.next": "the sum of the losses of this pass, including this step",
    "name.start": "where each letter’s probability starts, on a line from 0 to 1",
    "name.chance": "the random number of each letter",
    "name.picked": "id of the letter that the random number selects",
    "name.length": "number of letters before the first <BOS>",
    "name.drawn": "how many random numbers this name uses",
    "used": "how many random numbers earlier names use",
    "next.used": "how many random numbers are used up to this name",
    "points": "points of the loss curve: mean losses of the steps",
    "next.points": "points of the loss curve, with the point of this step",
    "advantage": "reward of the text minus the mean reward, divided by the deviation",
    "all.tokens": "id of the word in each pair of a word and a place",
    "all.positions": "place of each pair",
    "all.last": "the pair of a beginning’s last word and its place, as a number",
    "all.stream": "residual stream of a beginning’s last word, before the block",
    "settled": "sums of the states, computed before the training step",
}
OF_LOSS = {  # the blocks of a loss, by their names in it
    "targets": "id of the word after each token",
    "share": "the weight of each token in the mean",
    "numbers": "the words' ids",
    "chosen": "1 for the true next word, 0 for other words",
    "score": "score of the true next word",
    "of_token": "surprise at the true next word: -ln of the word’s probability",
    "counted": "surprise, multiplied by the word’s share of the loss",
}
OF_POLICY = {  # the blocks of a loss by rewards, by their names in it
    "reference": "surprise of the reference model at the word",
    "kept": "surprise at the word when it was drawn, from the previous update",
    "fresh": "1 for new texts, 0 for the texts of the update before",
    "old": "surprise at the word when it was drawn",
    "ratio": "probability of the word now, divided by its probability when it was drawn",
    "clipped": "ratio within the clip range",
    "surrogate": "the smaller of ratio × advantage and clipped ratio × advantage",
    "divergence": "estimate of the KL divergence from the reference model",
    "counted": "the part of the loss that comes from the word",
    "loss": "loss: the mean of beta × KL divergence − surrogate",
}
OF_SSM = {  # the blocks of a state space model, where other parts have the same names
    "x": "input of the channels",
    "step": "step size of each channel: a larger step forgets and learns faster",
    "gate": "gates, before the activation function",
    "left": "share of the previous token’s states that remains",
    "added": "input multiplied by step size",
    "z": "output of the states, plus the input that bypasses the states",
    "W_out": "output weights, into the stream",
}
OF_DISTANCE = {  # the blocks of distances that scores depend on, where others have the same names
    "rows": "row of the table of distances, for each distance of this text",
    "embed": "each distance’s vector, from a table",
    "W_distance": "one vector per distance",
    "W_K": "weights: key of a distance",
    "W_Q": "weights: query of a distance",
    "k": "key of each distance",
    "q": "query of each distance",
    "of_query": "match of each query with each distance",
    "of_key": "match of each key with each distance",
}
OF_TIME = {  # the blocks of time mixing, where other parts have the same names
    "k": "importance of a token for each channel, as a logarithm",
    "v": "value of a token for each channel",
    "z": "weighted mean of all values up to the token",
    "gated": "weighted mean, multiplied by the gates",
    "W_out": "output weights, into the stream",
}
OF_STATE = {  # what an optimizer keeps of a weight's gradients, by the first word of its name
    "speed": "velocity from earlier steps: a decaying sum of the gradients",
    "size": "second moment from earlier steps: a mean of the squared gradients",
    "m": "running mean of the gradient, from earlier steps",
    "v": "running mean of the squared gradient, from earlier steps",
}
AXES = {"token": "tokens", "token_b": "tokens", "source": "source tokens"}
AXES |= dict.fromkeys(("vocab", "vocab_out", "vocab_source"), "words")
AXES |= {"n_ctx": "positions", "place": "positions", "head": "heads"}
AXES["distance"] = "distances"


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
    of_part = {
        "loss": OF_LOSS,
        "policy": OF_POLICY,
        "time": OF_TIME,
        "ssm": OF_SSM,
        "conv": OF_CONVOLUTION,
        "distance": OF_DISTANCE,
    }
    for part, meanings in of_part.items():
        if part in block.inside and block.leaf in meanings:
            return meanings[block.leaf]
    return _of_leaf(block)


def _of_leaf(block: Block) -> str:
    """A block's meaning by its leaf."""
    if block.leaf.isdigit():
        return MEANING.get(block.inside[-1], "")
    if block.name.endswith("distance.W"):
        return "bias of each distance bucket, one column per head"
    if block.leaf == "scale" and block.inside[-1:] not in (("attn",), ("cross",)):
        return "the divisor of each token"
    if block.leaf == "chosen" and "router" not in block.inside:
        return "sum of what the chosen experts write"
    if block.leaf == "score" and block.part == "mlp":
        return "the expert's score, before the sigmoid"
    if block.leaf == "on" and block.part == "mlp":
        return "the expert's switch × the switch for all experts"
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
        return "table with rows and columns swapped (transposed)"
    if block.leaf == GAIN:
        return "estimated rise of the lead with the other sentence’s row"
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


SUBLAYERS = ("attn_out", "ssm_out", "mixed_out", "cross_out", "conv_out", "time_out", "mlp_out")


def stage_names(graph: Graph, stages: Sequence[Block]) -> list[str]:
    """The name of each stage of the residual stream, by what was added last: `attention 0`,
    `MLP 0`; both together are a layer."""
    sums = [stage for stage in stages[1:] if not _extra(stage)]
    layers, names = [stage.layer for stage in sums], {}
    for k, layer in enumerate(layers):
        leaves = [leaf for leaf in SUBLAYERS if f"blocks.{layer}.{leaf}" in graph.blocks]
        if "mixed_out" in leaves:  # the sum of the two before it
            leaves = leaves[2:]
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
