"""Messages as data frames of Spark: the formats `rocketmq`, `rocketmq-store` and `pocketmq-journal`, and a session.

sink/       data frames as messages
sources/    the readers of the three formats
session/    Java, settings, registration, progress
"""
