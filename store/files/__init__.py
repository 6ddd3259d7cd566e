"""Files on disk and mapped into memory, whatever their format.

disk.py          system calls beyond read and write: force to disk, reserve room, give advice
mapped_file.py   one file of fixed size, mapped into memory
mapped_files.py  files of one size that form one space of positions
lost_files.py    damaged bytes that a start took out of the log
fields_file.py   4096 bytes that begin with int64 fields: checkpoint, timercheck
json_file.py     a table as a file with a backup, safe against a kill at any moment
"""
