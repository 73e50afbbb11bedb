"""Replies that somebody else collected: read from their files, and made into a run.

`files` and `inspect_log` read a file as rows, and `rows` keeps them. `forms` and `fields` read a
row as a reply. `samples` finds the reply's sample in a task, or makes one; `draws` says which draw
it is. `recorder` writes the reply into the journal of a recorded run.
"""
