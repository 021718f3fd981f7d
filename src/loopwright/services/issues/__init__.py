"""Work that comes from the issues of a forge: taken, followed through its pull request, and closed.

Not here: the rules (`core.integrations.issues`), and the interfaces of GitHub and GitLab (`adapters.forge`).
"""
