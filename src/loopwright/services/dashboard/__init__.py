"""The data of the pages: one value per page, read in one transaction.

Not here: HTML and drawing (`server.pages`), and anything that changes a row (`services.remote`).
"""
