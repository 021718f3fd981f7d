"""What the forms share that keep their tasks in one Markdown file: finding tasks, their order, and their boxes.

Not here: which files belong to a form and which of its sections hold tasks (each form's own package).
"""
