"""`pocketmq pipeline`: the jobs, and what surrounds them.

command.py          the list of jobs
demo.py             from a running broker to a report for the browser
prepare.py          the class archive that lets sessions start sooner
"""
