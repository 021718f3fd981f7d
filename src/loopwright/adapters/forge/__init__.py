"""`ports.Forge` for GitHub and GitLab, over their HTTP interfaces."""
