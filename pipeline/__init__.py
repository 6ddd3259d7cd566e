"""pocketmq.pipeline: topics, stores and journals as Spark data frames, and the jobs that read them.

What a user needs: `session` (or `register`), and the formats `rocketmq`, `rocketmq-store` and `pocketmq-journal`, which
docs/pipeline.md describes. The extra is `pocketmq[spark]`. Bottom up:

    errors.py, access.py    what a user does about a failure; access keys and TLS
    records/            records and Arrow batches, both ways (no Spark, no files, no sockets)
    journal/            journals to columns
    planning/           options, positions, ranges (pure)
    stores/             the files of a store (no Spark)
    brokers/            questions to brokers and sends, from ordinary functions (no Spark)
    sink/               messages out
    sources/            the Spark readers of the three formats
    session/            Java, settings, registration, progress
    report/             tables in a terminal, pages of HTML
    jobs/               audit, duplicates, lag, latency, replay, export
    behaviour/          what clients really did
    formats/            the names by which Spark finds the formats
"""
