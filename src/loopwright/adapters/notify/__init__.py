"""Send notices through Apprise, an extra, to desktops, mail and chats.

Not here: which events make a notice (`core.integrations.notices`), and when to send them (`services.notifications`).
"""
