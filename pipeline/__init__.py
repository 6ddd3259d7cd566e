"""pocketmq.pipeline: topics, stores and journals as Spark data frames, and the jobs that look at them.

What a user needs: `session.py` (or `register`), and the formats `rocketmq`, `rocketmq-store` and `pocketmq-journal`;
the document named as this package tells of both. The extra is `pocketmq[spark]`. In reading order; what says "pure"
imports neither Spark nor sockets:

    errors.py               what a user does about it
    columns.py              the columns of each table (pure)
    boundaries.py           where records begin (pure)      cutting.py          pieces of a buffer (pure)
    codec.py                records to columns (pure)       properties_codec.py   and their properties (pure)
    encoder.py              columns to batches (pure)
    offsets.py              positions, ranges, limits (pure)
    access.py               keys and TLS
    options.py              the source's options (pure)     sink_options.py     the sink's (pure)

    wire.py                 brokers, asked from ordinary functions
    range_reader.py         one range, several pulls        batch_sender.py     batches, several in flight
    planner.py              from options to ranges
    source.py               `rocketmq`, batch               stream_source.py    and as a stream
    sink.py                 messages out                    transactions.py     its transactional level
    store_files.py          files of a store                store_scan.py       what is in them, and what is wrong
    store_source.py         `rocketmq-store`
    journal_rows.py         journals to columns             journal_source.py   `pocketmq-journal`
    class_archive.py        for a JVM that starts sooner
    session.py              Java, settings, registration    progress.py         a query's progress as a group's
    formats/                the names by which Spark finds the formats

    job_run.py              how every job starts and ends   job_output.py       what it does with its result
    terminal_tables.py      tables where they are read      html_report.py      a page with everything in it
    messages_of.py          a store or topics, for any job  job_access.py       keys for them
    audit_job.py            gaps, order, damage             duplicates_job.py   stored more than once
    lag_job.py              how far groups are behind       latency_job.py      from sent to consumed
    replay_job.py           sent again                      export_job.py       to Parquet
    ownership.py            who read which queue when       behaviour_drawing.py   the same drawn
    behaviour_job.py        what clients really did
"""
