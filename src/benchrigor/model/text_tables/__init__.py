"""Tables in text, as all readers of files see them: rows, numbers, and the words of errors."""
