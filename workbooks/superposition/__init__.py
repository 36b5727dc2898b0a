"""superposition: five features in two numbers, and a sparse autoencoder that finds them again.

x
"""
from engine.cells.functions import SUM
from exporters.book import Book
from exporters.story import Story
from exporters.tables import Workbook, near
from workbooks.superposition import learning, sparsity, toy, trained

TOPIC, AFTER, LEVEL = "Inside a block", "fact-lookup", 2
TITLE = "superposition: more features than numbers, and how to find them again"

def book() -> Book:
    w = Workbook("superposition")
    learned = learning.load()
    t = toy.add(w, learned)
    w2 = w.sheet  # noqa
    tr = trained.add(w, learned)
    s = sparsity.add(w, tr)
    return w.done(Story(TITLE, "s", ["a"], ["l"], list(w.book.sheets["Toy model"].tries)))
