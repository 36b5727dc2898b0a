"""Transformers as graphs of cells: their ops and parts, their weights, tokens and training."""
