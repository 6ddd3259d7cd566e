"""The tables in the config folder: JSON files with a data version, read whole at start and saved when they changed.

json_table.py    the part that all tables share: file, data version, mark for unsaved changes
table_text.py    the text of a large table's file, made in pieces
topic_table.py   topics: those a broker is created with, and the rules by which a send creates one
group_table.py   subscription groups, and which topics they may not consume
attributes.py    attributes of topics and groups (5.x): their names and allowed values
offset_table.py  how far each group has consumed each queue
delay_table.py   how far each delay level has been delivered
metric_table.py  how many timed messages and open transactions wait, by topic
"""
