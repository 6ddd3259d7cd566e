"""pocketmq.pipeline: topics, stores and journals as Spark data frames, and the jobs that read them.

Users need `session.session` (`pocketmq_session` or `register`) and the formats `rocketmq`, `rocketmq-store` and
`pocketmq-journal`, which docs/pipeline.md describes. The extra is `pocketmq[spark]`. Rooms, bottom up:

    errors.py     the errors, by what the user can do about them
    records/      stored records and Arrow arrays, both ways
    planning/     options, positions and ranges
    files/        files of a store and journals
    brokers/      questions to brokers, and sends
    sink/         data frames as messages
    sources/      the Spark readers of the three formats
    session/      Java, settings, registration, progress
    report/       tables on a terminal, pages of HTML
    jobs/         audit, duplicates, lag, latency, replay, export
    behaviour/    what clients really did
    formats/      the modules by which Spark finds the formats

pyspark is imported in sources, sink, session, jobs and behaviour only.
"""
