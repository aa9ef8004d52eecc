"""A shell line in, a report out.

The report says which programs would run, which paths they touch, which effects they have, and how sure that is. Nothing
here runs a program, opens a file or follows a link.
"""
