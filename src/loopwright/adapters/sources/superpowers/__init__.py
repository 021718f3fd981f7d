"""Plans of superpowers, and others whose tasks are headings: `### Task 3: Title` with steps below."""
