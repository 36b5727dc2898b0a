"""The command `cellformer`, one module for each kind of thing that it does."""
