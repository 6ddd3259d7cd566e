"""pocketmq.store.tables

attributes.py          Attributes of topics and groups (5.x)
delay_table.py         DelayTable
group_table.py         GroupTable
json_table.py          JsonTable
light_offset_table.py  LmqOffsetTable
metric_table.py        MetricTable
offset_table.py        OffsetTable
topic_table.py         TopicTable
built_in_topics.py: the topics a broker is created with
"""
