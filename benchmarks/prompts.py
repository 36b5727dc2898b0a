"""Twenty prompts of three models with random weights, in transformers, the command and the sheet.

For each of a SentencePiece llama, a byte-level gpt2 and a llama with WordPiece: the ids that the
command and the sheet make of each prompt, and the greedy text of both, are what transformers has;
the sheet's in IronCalc and LibreOffice from wrong values, and in LibreOffice typed one after the
other in a workbook opened with the values that it holds. Prints how many of the prompts agree.

    PYTHONPATH=.:tests python benchmarks/prompts.py [n_prompts]
"""

import sys
import tempfile
from pathlib import Path

import torch
import transformers
from conftest import CellAt, InIronCalc, cli
from learnt import KINDS, texts
from libreoffice import recomputed, typed_by_hand

import cellformer as cf
from cellformer.engine.text.detokenizing import held
from cellformer.exporters.checking.programs import Recomputed
from cellformer.exporters.checking.verify import poison
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file.reading import Value

N_TOKENS = 14
Told = tuple[list[int], str]  # ids, and their text


def llama(n_words: int) -> transformers.PreTrainedModel:
    """A small one, of random weights."""
    config = transformers.LlamaConfig(
        vocab_size=n_words,
        hidden_size=8,
        intermediate_size=12,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=32,
        initializer_range=0.6,
    )
    return transformers.LlamaForCausalLM(config)


def gpt2(n_words: int) -> transformers.PreTrainedModel:
    """The same."""
    config = transformers.GPT2Config(
        vocab_size=n_words, n_embd=8, n_layer=1, n_head=2, n_positions=32, initializer_range=0.6
    )
    return transformers.GPT2LMHeadModel(config)


MODELS = {"sentencepiece": llama, "gpt2": gpt2, "bert": llama}  # by kind of tokenizer


def folder_of(kind: str, where: Path) -> Path:
    """A checkpoint folder as transformers saves it."""
    inner = KINDS[kind]()
    torch.manual_seed(len(kind))
    model = MODELS[kind](inner.get_vocab_size())
    model.generation_config.eos_token_id = None
    model.config.eos_token_id = None
    model.save_pretrained(where / kind)
    inner.save(str(where / kind / "tokenizer.json"))
    return where / kind


def in_transformers(folder: Path, n_prompts: int) -> dict[str, tuple[list[int], Told]]:
    """By prompt: its ids; those ids and the greedy ones behind them, with their text."""
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), clean_up_tokenization_spaces=False
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    found: dict[str, tuple[list[int], Told]] = {}
    for prompt in texts(20 * n_prompts, 40, seed=5):
        given = tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
        ids = given["input_ids"][0].tolist()
        if 0 < len(ids) < N_TOKENS and prompt.isascii() and len(found) < n_prompts:
            more = N_TOKENS - len(ids)
            whole = model.generate(**given, do_sample=False, max_new_tokens=more)[0].tolist()
            found[prompt] = ids, (whole, tokenizer.decode(whole, skip_special_tokens=True))
    return found


def main() -> None:
    """Try every kind."""
    transformers.logging.set_verbosity_error()
    n_prompts = int((sys.argv[1:] or [20])[0])
    with tempfile.TemporaryDirectory() as name:
        for kind in MODELS:
            where = Path(name) / kind
            where.mkdir()
            told = tried(folder_of(kind, where), n_prompts, where)
            print(f"{kind}: " + ", ".join(f"{who} {n}" for who, n in told.items()), flush=True)


def tried(folder: Path, n_prompts: int, where: Path) -> dict[str, int]:
    """How many of the prompts agree, by who is asked."""
    model = cf.load(folder)
    prompts = in_transformers(folder, n_prompts)
    book = cf.build(model, prompt="the", n_tokens=N_TOKENS, title=folder.name)
    path = cf.write(book, where / "sheet.xlsx")
    sheets = in_sheets(book, path, list(prompts), where)
    counts = {"prompts": len(prompts), "ids": 0, "generate": 0} | dict.fromkeys(sheets, 0)
    for k, (text, (ids, told)) in enumerate(prompts.items()):
        more = str(N_TOKENS - len(ids))
        printed = cli("generate", folder, "--prompt", text, "-n", more, "--ignore-eos").out
        counts["ids"] += model.vocabulary.encode(text) == ids
        counts["generate"] += printed == told[1] + "\n"
        for who, found in sheets.items():
            same = found[k] == (told[0], held(told[1]))
            counts[who] += same
            if not same:
                print(f"  {who} {text!r}: {found[k]}, not {told}")
    return counts


def in_sheets(book: Book, path: Path, prompts: list[str], where: Path) -> dict[str, list[Told]]:
    """What each program makes of the prompts typed in the sheet."""
    sentence = book.cell("sentence", 0, 0)
    cells = [book.cell("tokens", t, 0) for t in range(N_TOKENS)] + [book.cell("text.whole", 0, 0)]
    poison(path, where / "wrong.xlsx")
    texts = [{sentence: text} for text in prompts]
    wrong = recomputed(where / "wrong.xlsx", texts, where / "recomputed")
    by_hand = typed_by_hand(path, texts, where / "by hand")
    sheet, in_ironcalc = InIronCalc(where / "wrong.xlsx"), []
    for text in texts:
        with sheet.typed(text):
            in_ironcalc.append({cell: sheet[cell] for cell in cells})
    programs = {
        "LibreOffice from wrong values": [of(file, cells) for file in wrong],
        "LibreOffice typed": [of(file, cells) for file in by_hand],
        "IronCalc": in_ironcalc,
    }
    return {who: [shown(found, cells) for found in told] for who, told in programs.items()}


def of(file: Recomputed, cells: list[CellAt]) -> dict[CellAt, Value]:
    """The values of cells."""
    return {(sheet, row, col): file[sheet][row, col] for sheet, row, col in cells}


def shown(found: dict[CellAt, Value], cells: list[CellAt]) -> Told:
    """The ids and the line of text that Play shows."""
    *ids, line = (found[cell] for cell in cells)
    return [-1 if isinstance(i, str) else int(i or 0) for i in ids], str(line or "")


if __name__ == "__main__":
    main()
