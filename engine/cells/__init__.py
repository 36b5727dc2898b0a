"""Cells: blocks, ops, formulas and their interpreters. Nothing here knows about transformers."""
