"""The kinds of hostile input that `python tests/hostile.py` tries, a file for each group of kinds.

A file is found by being there. It has `KINDS`, functions that draw one case after another, and
possibly `ready`, which makes what its cases share before processes are forked.
"""
