"""Text forms of the official programs: JSON as fastjson writes and reads it, Java properties files.

fastjson.py         read and write JSON; the only door to the next file
json_reader.py      the tolerant reader for what is not standard JSON
java_properties.py  properties text, as in broker.conf
"""
