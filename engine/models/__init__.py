"""Transformers as graphs of cells: how one is described, its forward pass, its files, what it says.

spec (sizes and choices) < foreign, tensors, formats (files of models) < ops, forward, parts (cells)
< architectures (a file for each) < model, checkpoint < choosing, generate, prompt, encoding (the
next word, and sentences that are typed).
"""
