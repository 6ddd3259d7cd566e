"""What a job found, for people: on the terminal, as one HTML page, as JSON and Parquet. No Spark.

report.py           a report, its tables, and where they are written
output_folders.py   folders of Parquet files, of which only what a job has written is replaced
cells.py            how values and column names are written
terminal.py         tables on a terminal
page.py             one self-contained HTML page
timeline.py         timelines as SVG
"""
