"""Work lists in JSON whose keys and status words differ from one project to the next.

Not here: the text of JSON files (`sources.text`).
"""
