"""Text forms of the official programs: JSON as fastjson writes and reads it, Java properties.

fastjson.py         reads and writes JSON: the door to the next three
json_writer.py      writes it
json_reader.py      reads what is not standard JSON
json_references.py  resolves references inside a text
java_properties.py  properties text, as in broker.conf
"""
