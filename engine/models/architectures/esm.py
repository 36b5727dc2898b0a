"""ESM-2 (Lin et al. 2023, "Evolutionary-scale prediction of atomic-level protein structure",
supplement A.1): an encoder of proteins, a token for each amino acid, with norms before its
sublayers and rotary positions.

In training 15 % of the tokens were masked, and 80 % of these had no vector: what the others bring
into the stream is multiplied so that their sum is as large as it was then, however many are
masked. ESM-1b has learned positions, and a norm of the embedding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts, sentence_modules
from cellformer.engine.models.architectures import bert
from cellformer.engine.models.foreign import Config, Piece, Pieces, layout
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.pooling import pool
from cellformer.engine.models.spec import CLASSES, ModelSpec

MODEL_TYPES = ("esm",)
EPS = bert.EPS
SEEN = 1 - 0.15 * 0.8  # the share of tokens that had a vector in training
SPEED = "rotary_embeddings.inv_freq"  # how fast pairs turn, alike in all layers; where it stands:
PLACES = ("", "encoder.layer.0.attention.self.", "encoder.layer.*.attention.self.")
UNREAD = ("*.pooler.*", "*.contact_head.*", "lm_head.*", f"*.{SPEED}")  # of tasks, of other layers


@dataclass(frozen=True, repr=False)
class EsmSpec(ModelSpec):
    """ModelSpec with ESM's own fields."""

    mask: int | None = None  # the id of tokens without a vector; None: every token has one

    @property
    def d_pair(self) -> int:
        """The number of rotated pairs of a head's features."""
        return self.d_head // 2


def forward(g: Forward, ids: Sequence[int]) -> None:
    spec = g.spec
    present = g.input("attention_mask", np.ones((len(ids), 1)), ("token", ""))  # [n_tokens, 1]
    W_E, x = embed(g, ids, present)  # x: [n_tokens, d_model]
    turn = rotation(g, len(ids)) if spec.position == "rotary" else None

    def attend(b: Forward, y: Block) -> Block:
        return bert.attention(b, y, present, turn)  # [n_tokens, d_model]

    sublayers = (("ln1", "resid_mid", attend), ("ln2", "resid_post", bert.mlp))
    x = parts.layers(g, [x], parts.layer_norm, sublayers)  # [n_tokens, d_model]
    x = parts.layer_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    if spec.gives == "sentence":
        pool(g, x, present)
    else:
        bert.read_out(g, x, W_E, "ln_head")


def embed(g: Forward, ids: Sequence[int], present: Block) -> tuple[Block, Block]:
    """The embedding, and the tokens' vectors [n_tokens, d_model], without masked tokens, and in
    ESM-1b with positions and a norm."""
    spec = g.spec_as(EsmSpec)
    W_E, x = parts.embed(g, ids, "embed" if spec.mask is None else "embed.word")
    if spec.mask is not None:
        e = g.at("embed")
        is_mask = e.block("is_mask", ops.is_number, g["tokens"], e.input("mask", spec.mask))
        masked = e.block("masked", ops.times_rows, is_mask, present)  # [n_tokens, 1]
        seen = e.input("seen_in_training", SEEN)
        by = e.block("compensation", ops.compensation, masked, present, seen)  # [1, 1]
        x = g.block("embed", ops.unmasked, x, masked, by)  # [n_tokens, d_model]
    if spec.position == "learned":
        places = parts.positions(g, len(ids), spec.first_position)  # [n_tokens, 1]
        W_pos = g.weight("W_pos", "n_positions", "d_model")
        x = g.block("embed_sum", ops.add, [x, g.block("pos_embed", ops.embed, places, W_pos)])
    return W_E, parts.layer_norm(g.at("ln_embed"), x, spec.norm_eps) if spec.embed_norm else x


def rotation(g: Forward, n_tokens: int) -> tuple[Block, Block]:
    """Cosines and signed sines of every position's angles, each [n_tokens, d_head]. How fast pairs
    turn stands in the checkpoint, rounded as it was in training."""
    r, n = g.at("rotary"), g.spec.d_head // 2
    position = r.input("positions", np.arange(n_tokens).reshape(-1, 1), ("token", ""))
    speed, twice = r.weight("speed", "pair"), np.tile(np.eye(n), 2)
    frequency = r.block("frequency", ops.linear, speed, r.input("twice", twice, ("", "d_head")))
    sign = r.input("sign", np.repeat([-1.0, 1.0], n)[None], ("", "d_head"))  # [1, d_head]
    cos = r.block("cos", ops.cosine, position, frequency)  # [n_tokens, d_head]
    return cos, r.block("sin", ops.signed_sine, position, frequency, sign)


def read_config(c: Config) -> ModelSpec:
    c.refuse("is_folding_model", False, "cellformer reads only the language model of ESMFold")
    c.refuse("is_decoder", False, "cellformer does not know decoders of this kind")
    c.refuse("add_cross_attention", False, "this model has no second text to attend to")
    c.assume(hidden_size=768, num_hidden_layers=12, num_attention_heads=12)
    c.assume(intermediate_size=3072, max_position_embeddings=1026)
    c.ignore("hidden_act", "rope_theta", "rope_parameters", "vocab_list", "esmfold_config")
    c.ignore("chunk_size_feed_forward")  # how much of the MLP is computed together
    kind = c.get("position_embedding_type", str, "absolute")
    if kind not in ("absolute", "rotary"):
        raise InputError(
            f"{c.path}: position_embedding_type {kind!r} is not supported; use absolute or rotary"
        )
    first = 1 + c.get("pad_token_id", int) if kind == "absolute" else 0
    n_positions = c.get("max_position_embeddings", int)
    return EsmSpec(
        **c.sizes(),
        n_ctx=sentence_modules.longest(c, n_positions - first),
        d_mlp=c.get("intermediate_size", int),
        activation="gelu",
        norm_eps=c.get(EPS, float, 1e-12),
        embed_norm=c.get("emb_layer_norm_before", bool, False),
        n_positions=n_positions,
        first_position=first,
        mask=c.get("mask_token_id", int) if c.get("token_dropout", bool, False) else None,
        **bert.of_encoders(c, "gelu")
        | {"norm_after": False, "position": "learned" if kind == "absolute" else "rotary"},
    )


def pieces(spec: ModelSpec) -> Pieces:
    """BERT's layout, but for the norms; matrices are [out, in]."""
    yield from bert.of_embeddings("esm", "layer_norm")
    for place in PLACES:  # in the reference, in older files, in those that the reference writes
        yield "rotary.speed", Piece(f"esm.{place}{SPEED}")
    yield from layout(
        {"ln_final": "esm.encoder.emb_layer_norm_after"},
        "esm.encoder.layer.{}",
        {"ln1": "attention.LayerNorm", "ln2": "LayerNorm"},
        bert.heads,
        attn="attention",
        mlp=bert.MLP,
    )(spec)
    if spec.gives not in CLASSES:
        yield "b_U", Piece("lm_head.bias")  # tied or not
    yield from bert.of_head(spec, bert.of_words("lm_head", ln="layer_norm"), ln="ln_head")
