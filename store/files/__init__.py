"""Files on disk and in memory, below every format.

disk.py          what is asked of the system: force to disk, reserve room, give advice
open_maps.py     at most so many files are mapped at once
mapped_file.py   one file of fixed size, mapped into memory
mapped_files.py  files of one size that form one space of positions
fields_file.py   4096 bytes that begin with int64 fields: checkpoint, timercheck
json_file.py     a table as a file with a backup, safe against a kill at any moment
disk_usage.py    how full the disk is
"""
