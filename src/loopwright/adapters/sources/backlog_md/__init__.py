"""Tasks of Backlog.md: one file for each in `backlog/tasks`, with its status in the front matter."""
