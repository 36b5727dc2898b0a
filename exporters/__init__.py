"""From a graph, or tables, to a file and back: layout (what stands where), theme (how it looks),
pages (the sheets of a model), xlsx (the writer), reading and differences (what somebody changed in
a file), verify (other spreadsheet programs recompute it)."""
