"""Excel's rules, each with what breaks it; `exporters.checking.audit` holds a file to them.

They are of ECMA-376, of Microsoft's "Excel specifications and limits", of [MS-XLS] for shared
formulas, and of what Excel was reported to repair.
"""

Fault = tuple[str, str]  # a rule that is broken, and where
