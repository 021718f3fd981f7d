"""The endpoints, one module for each noun.

Not here: the shape of documents (`server.shapes`), tokens and limits (`server.guard`).
"""
