"""Several files written, removed and moved as one: all of it or nothing, and taken back byte for byte.

A transaction has a folder of its own, its record. There the texts before and after are laid down first, and last the
list of what is to be done: before the list stands nothing has happened, from then on it will be completed, by the next
command if need be. Files come first, then moves: once a folder has moved, all its files are as they should be.
Nothing here locks: whoever calls holds a lock for the folder of records.

operations  what can be asked for
beginning   what is refused, and what is laid down before anything is touched
doing       carry out, finish what was cut off, undo
records     what is kept of a transaction, and for how long
places      looking at what stands where, with no link on the way
"""
