"""Reading and editing text files with line numbers: JSON, YAML, Markdown, schema checks, problems.

Not here: anything about a single format.
"""
