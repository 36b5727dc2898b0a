"""From a graph to a file: layout (what stands where), theme (how it looks), xlsx (the writer),
verify (other spreadsheet engines recompute the file). Nothing here knows a particular model."""
