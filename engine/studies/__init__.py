"""Analyses of a model: ablation, logit lens, sensitivity, the size of its workbook."""
