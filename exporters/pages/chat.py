"""Chat: the way from the text on Play to the text for the model.

A model that chats has a template, a program that writes a conversation. Its pieces are here, as
they stand around what is typed, and where it strips white space from the ends of a text, the cells
that do.
"""

from cellformer.engine.cells.language import worded
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.model import layout
from cellformer.exporters.model.block_sheets import PROMPT_COL
from cellformer.exporters.model.model_book import ModelBook

SHEET = "Chat"
PURPOSE = (
    "how your message becomes the text that the model reads, with the pieces of the chat template"
)
AFTER = "Play"
PIECES = {  # blocks with a text, and what they are
    "chat.opening": "piece before system text",
    "chat.middle": "piece between the system text and your message",
    "chat.without": "piece before your message, if there is no system text",
    "chat.said": "what you say",
    "chat.closing": "piece after your message, before the model’s answer",
    "chat.answering": "piece in earlier turns, between your message and the answer",
    "chat.following": "piece between an answer and your next message",
    "sentence": "the whole text for the model",
    "chat.so_far": "to continue, copy this value into ‘earlier turns’ on the sheet Play",
}
MOST, HEIGHT = 9, 18  # lines of a text that is computed, and points of one
STRIPPED = {"system": "System", "you": "You", "answer": "the answer"}
STEPS = {
    "plain": "the text with all white space as plain spaces",
    "lead": "spaces at the start, counted in steps of 32, 16, …",
    "trail": "spaces at the end, counted in steps of 32, 16, …",
}


def wanted(book: ModelBook) -> bool:
    """Whether the workbook is for a conversation."""
    return book.plan.chat


def add(book: ModelBook) -> None:
    """Add the pieces, and the steps that strip white space."""
    page = layout.page(book, SHEET, widths={0: 14, 1: 48, PROMPT_COL: 60})
    page.heading(worded("The pieces of the chat template"))
    for name, meaning in PIECES.items():
        if name in book.graph.blocks:
            page.sheet.put(page.cursor, 1, meaning, "line label")
            page.lay(book.graph[name], (page.cursor, PROMPT_COL), "line", named=False)
            page.sheet.heights[page.cursor] = HEIGHT * _lines(book, name)
            page.cursor += 1
    for name, label in STRIPPED.items():
        if f"chat.{name}.plain" in book.graph.blocks:
            _steps(book, page, name, label)


def _lines(book: ModelBook, name: str) -> int:
    """The number of lines that a text has room for."""
    if name in book.graph.inputs:
        return 1 + str(book.graph.inputs[name][0, 0]).rstrip("\n").count("\n")
    return 1 if name == "chat.said" else MOST


def _steps(book: ModelBook, page: Composer, name: str, label: str) -> None:
    """Add how white space is stripped from the ends of a text."""
    page.heading(worded("White space that the template removes from the ends of a text"))
    page.sheet.put(page.cursor, 1, label, "row label")
    page.lay(book.graph[f"chat.{name}.blanks"], (page.cursor + 1, 0), "symbol typed", named=False)
    for leaf, meaning in STEPS.items():
        block = book.graph[f"chat.{name}.{leaf}"]
        page.sheet.put(page.cursor + 1, 1, meaning, "row label")
        page.lay(
            block, (page.cursor + 1, PROMPT_COL), "text" if leaf == "plain" else "id", named=False
        )
        page.cursor += 1 + block.shape[0]
