"""One straight function per architecture, each read top to bottom like its paper's figure."""
