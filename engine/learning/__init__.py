"""Training: objectives, optimizers, and steps made by cells or by torch."""
