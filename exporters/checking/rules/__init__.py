"""Excel's rules, and the ways to break them; `cellformer.exporters.checking.audit` applies them to
a file.

They come from ECMA-376, Microsoft's "Excel specifications and limits", [MS-XLS] for shared
formulas, and reports of what Excel repaired.
"""

Fault = tuple[str, str]  # a rule that is broken, and where
