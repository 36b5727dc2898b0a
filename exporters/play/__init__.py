"""What the sheet Play is made of: the typed sentence, its settings, the ranking."""
