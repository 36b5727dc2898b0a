"""Classifiers: held to transformers by golden files; their workbooks; what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, cli, recomputed_in_ironcalc
from on_play import RANKS_OF_LAST
from test_references import TOLERANCE, largest_gap

import cellformer as cf
from cellformer.engine import InputError
from cellformer.engine.models import checkpoint
from cellformer.exporters.checking.verify import formula_cells
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.web import data

TEXT, TOKEN, IMAGE = (GOLDEN / "classes" / name for name in ("distilbert", "roberta", "vit"))
IMAGES = [IMAGE, *(GOLDEN / "classes" / name for name in ("dinov2", "siglip", "clip"))]
DECODERS = [GOLDEN / "classes" / name for name in ("qwen3", "gpt2")]
PADDING = 0  # of the golden qwen3
IDS = [3, 1, 5, 2]
CLASSES_ROW = 11  # of Play


@pytest.mark.parametrize("folder", [TEXT, TOKEN, *IMAGES, *DECODERS], ids=str)
def test_golden(folder: Path) -> None:
    with np.load(folder / "golden.npz") as reference:
        graph = checkpoint.load(folder).graph(reference["ids"].tolist())
        assert largest_gap(graph, dict(reference)) < TOLERANCE


@pytest.mark.parametrize("folder", [TEXT, TOKEN, *DECODERS], ids=str)
def test_saved_and_read_again(folder: Path, tmp_path: Path) -> None:
    model = checkpoint.load(folder)
    checkpoint.save(model, tmp_path / "again")
    again = checkpoint.load(tmp_path / "again")
    assert again.outputs == model.outputs
    before, after = (found.graph(IDS).values["probs"] for found in (model, again))
    np.testing.assert_array_equal(after, before)


def test_workbook_ranks_the_classes_of_a_text(tmp_path: Path) -> None:
    sheet = in_ironcalc(TEXT, tmp_path)
    probs = checkpoint.load(TEXT).graph(IDS).values["probs"][0]
    shown = {
        sheet["Play", RANKS_OF_LAST + rank, 1]: sheet["Play", RANKS_OF_LAST + rank, 4]
        for rank in range(2)
    }
    assert [*shown] == [["NEGATIVE", "POSITIVE"][k] for k in np.argsort(-probs)]
    assert [*shown.values()] == pytest.approx(sorted(probs, reverse=True), abs=1e-9)


def test_workbook_shows_the_class_of_each_token(tmp_path: Path) -> None:
    sheet = in_ironcalc(TOKEN, tmp_path)
    best = checkpoint.load(TOKEN).graph(IDS).values["logits"].argmax(axis=1)
    expected = [["O", "B-PER", "B-LOC"][k] for k in best]
    assert [sheet["Play", CLASSES_ROW, 2 + t] or "" for t in range(6)] == [*expected, "", ""]


@pytest.mark.parametrize("ids", [[3, 1, 5, 2], [3, 1, 5, PADDING], [3, PADDING, 5]])
def test_workbook_of_a_decoder_ranks_by_the_last_token_that_is_no_padding(ids, tmp_path) -> None:
    sheet = in_ironcalc(DECODERS[0], tmp_path, ids)
    place = 2 if PADDING in ids else 3
    probs = checkpoint.load(DECODERS[0]).graph(ids).values["probs"][place]
    shown = {
        sheet["Play", RANKS_OF_LAST + rank, 1]: sheet["Play", RANKS_OF_LAST + rank, 4]
        for rank in range(3)
    }
    assert [*shown] == [["Safe", "Unsafe", "Controversial"][k] for k in np.argsort(-probs)]
    assert [*shown.values()] == pytest.approx(sorted(probs, reverse=True), abs=1e-9)


def test_class_is_read_from_the_last_token_that_is_no_padding() -> None:
    model = checkpoint.load(DECODERS[0])
    places = [model.place_of_answer(ids) for ids in ([3, 1], [3, 1, PADDING, PADDING], [PADDING])]
    assert places == [1, 1, 0]


def test_decoder_without_a_head_says_which_heads_are_read(tmp_path: Path) -> None:
    shutil.copytree(DECODERS[0], tmp_path / "model")
    config = json.loads((DECODERS[0] / "config.json").read_text())
    bare = config | {"architectures": ["Qwen3Model"]}
    (tmp_path / "model" / "config.json").write_text(json.dumps(bare))
    with pytest.raises(InputError, match=r"Qwen3Model has no head.*ForSequenceClassification"):
        checkpoint.load(tmp_path / "model")


def test_classifier_continues_no_text() -> None:
    said = cli("generate", DECODERS[0], "--ids", "3,1")
    assert said.code == 2 and "is a classifier and cannot continue" in said.err


def in_ironcalc(folder: Path, tmp_path: Path, ids: list[int] = IDS):
    path = tmp_path / "book.xlsx"
    cf.write(cf.build(str(folder), ids=ids, n_tokens=6), path)
    return recomputed_in_ironcalc(formula_cells(WorkbookFile(path)), tmp_path)


REFUSED = {
    "one label": ({"id2label": {"0": "score"}}, "names fewer than two labels"),
    "several at once": ({"problem_type": "multi_label_classification"}, "choose one label"),
    "numbers": ({"id2label": {"0": 1, "1": 2}}, "is not a list of labels"),
    "gap": ({"id2label": {"0": "a", "5": "b"}}, "with the numbers 0 to 1"),
}


@pytest.mark.parametrize("change, said", REFUSED.values(), ids=REFUSED)
def test_refused(change: dict, said: str, tmp_path: Path) -> None:
    shutil.copytree(TEXT, tmp_path / "model")
    config = json.loads((TEXT / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(InputError, match=said):
        checkpoint.load(tmp_path / "model")


def test_lens_and_target_of_a_class() -> None:
    said = cli("run", TEXT, "--ids", "3,1,5", "--lens", "--target", "NEGATIVE")
    assert said.code == 0 and "MLP 1" in said.out


def test_label_keeps_its_spaces(tmp_path: Path) -> None:
    shutil.copytree(TEXT, tmp_path / "model")
    config = json.loads((TEXT / "config.json").read_text())
    labels = {"id2label": {"0": "=5 stars", "1": "1 star"}}
    (tmp_path / "model" / "config.json").write_text(json.dumps(config | labels))
    said = cli("run", tmp_path / "model", "--ids", "3,1,5", "--target", "=5 stars")
    assert said.code == 0 and "=5 stars" in said.out and "1 star" in said.out


def test_page_names_the_classes() -> None:
    page = data.of_book(cf.build(str(TEXT), ids=IDS, n_tokens=6)).data
    assert page["outputs"] == ["NEGATIVE", "POSITIVE"]


@pytest.mark.parametrize("folder", IMAGES, ids=str)
def test_model_of_images_is_saved_and_read_again(folder: Path, tmp_path: Path) -> None:
    ids = np.load(folder / "golden.npz")["ids"].tolist()
    model = checkpoint.load(folder)
    checkpoint.save(model, tmp_path / "again")
    again = checkpoint.load(tmp_path / "again")
    assert again.spec == model.spec
    before, after = (found.graph(ids).values["probs"] for found in (model, again))
    np.testing.assert_array_equal(after, before)


NOT_SQUARE = {"image_size": [4, 6]}
REFUSED_IMAGES = {
    "a table that is resized": ("dinov2", NOT_SQUARE, "is 4 x 6, but .*square images for a dinov2"),
    "images that are not square": ("clip", {"vision_config": NOT_SQUARE}, "images for a clip"),
    "an option of the part that sees": ("siglip", {"vision_config": {"x": 1}}, "not know x = 1"),
    "no patch": ("dinov2", {"patch_size": 7}, "5 x 5 pixels has no patch of 7 x 7"),
    "a patch of no pixel": ("vit", {"patch_size": 0}, "has no patch of 0 x 0"),
    "no class": ("dinov2", {"architectures": ["Dinov2Model"]}, "Dinov2Model gives no class"),
    "an activation function": ("vit", {"hidden_act": "xielu"}, "'xielu' is not supported"),
}


@pytest.mark.parametrize("name, change, said", REFUSED_IMAGES.values(), ids=REFUSED_IMAGES)
def test_refused_images(name: str, change: dict, said: str, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "classes" / name, tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(InputError, match=said):
        checkpoint.load(tmp_path / "model")


def test_lens_of_the_mean_of_patches_is_refused() -> None:
    image = ",".join(["7"] * 50)
    said = cli("run", IMAGES[1], "--ids", image, "--lens", "--target", "cat")
    assert said.code == 2 and "reads the mean of all tokens" in said.err


def test_image_of_another_size_and_a_workbook_of_it_are_refused() -> None:
    few = cli("run", IMAGE, "--ids", "3,1,5")
    assert few.code == 2 and "this model needs an image of 48 pixels" in few.err
    built = cli("build", IMAGE, "--ids", ",".join(["7"] * 48))
    assert built.code == 2 and "reads an image" in built.err
    beyond = cli("run", IMAGE, "--ids", ",".join(["256"] * 48))
    assert beyond.code == 2 and "pixels run from 0 to 255" in beyond.err
