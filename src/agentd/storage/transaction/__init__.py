"""Write, remove and move several files as one transaction: all or nothing, and undoable byte for byte.

A transaction has its own folder, the record. It stores the old and new contents first, and the plan last. Until the
plan is written, nothing has happened; from then on the transaction will be completed, by the next command if it is
interrupted. Files are written before folders are moved, so all files in a moved folder are done.
Nothing here takes a lock: the caller holds one for the folder of records.

execute       start, finish and undo a transaction
record_store  the record on disk
paths         operations, and safe access to paths below a root
"""
