"""A page of an encoder-decoder: a source sentence that is typed is answered as `generate` does."""

from dataclasses import replace
from pathlib import Path

import pytest
from in_node import call
from pages import values, written
from translators import N_TOKENS, SOURCES, TEXT_LENGTH, answer, translator

from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook

pytestmark = [pytest.mark.usefixtures("node"), pytest.mark.slow]


def test_a_page_answers_as_generate(tmp_path: Path) -> None:
    model = translator()
    read = model.reading(model.vocabulary.encode(SOURCES[1]))
    words = replace(passage(read, [model.spec.start], N_TOKENS), text_length=TEXT_LENGTH)
    book = model_workbook.build("translator", read, words)
    call("values.mjs", "open", str(written(book, tmp_path / "page.html")))
    for text in SOURCES[2:]:
        call("values.mjs", "edit", [["encoder.sentence", 0, 0, text]])
        found = values(tmp_path)["tokens"].astype(int).ravel().tolist()[1:]
        end = found.index(1) if 1 in found else len(found)
        assert found[:end] == answer(model, text), text
