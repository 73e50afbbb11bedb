"""Replies that somebody else collected: read from their files, and made into a run.

A file is read as rows (`files`, `inspect_log`), a row as a reply with what it says of itself
(`forms`, `fields`), a reply finds its sample in a task or makes one (`samples`), and the journal of
a recorded run takes it (`recorder`).
"""
