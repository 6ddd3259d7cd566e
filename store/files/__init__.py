"""pocketmq.store.files

disk.py          Forcing files and folders to disk
disk_usage.py    How full the disks below a store are
json_file.py     JsonFile
mapped_file.py   One file of fixed size, mapped into memory
mapped_files.py  Mapped files of one size that together form one space of positions
open_maps.py     A bound on how many files are mapped at once
disk.py: forcing to disk, reserving room
fields_file.py: the form of checkpoint and timercheck
"""
