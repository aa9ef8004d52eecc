"""A shell line in, a report out.

The report says which programs would run, which paths they touch, which effects they have, and how sure that is. No
program is run, no file opened and no link followed.
"""
