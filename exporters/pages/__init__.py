"""The pages of a workbook, one module each, around the blocks that layout has placed.

A page module has `page(book)`, which adds its sheet; the first lines of its module say what it
shows.
"""
