"""Transformers as graphs of cells: specs, forward passes, checkpoint formats, generation.

spec (sizes and choices) < foreign, tensors, formats (files of models) < ops, forward, parts (cells)
< architectures (a file for each) < model, checkpoint < choosing, generate, prompt, encoding (the
next word, and sentences that are typed).
"""
