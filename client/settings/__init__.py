"""pocketmq.client.settings

allocation.py       Who reads which queue
checks.py           How settings are checked
client_settings.py  Every setting of the official clients under its snake_case name, with its defa
java_setters.py     Official setters that are no settings here, and what to use instead
keywords.py         The settings as keyword arguments
"""
