# ruff: noqa: E402
# %% [markdown]
# # A look back at queues
#
# Run it cell by cell in a notebook with PySpark, the two connectors, and leaseway-spark.zip on its
# path, or as a whole:
#
#     leaseway spark examples/analyse.py 127.0.0.1:9092
#     spark-submit --master spark://host:7077 --py-files leaseway-spark.zip --packages ...
# examples/analyse.py host:9092

# %% Where the log is. Brokers that ask for more get it here: `options={"security.protocol":
# "SASL_SSL", ...}`.
import sys

from spark.frames.log import Log
from spark.frames.session import session
from spark.frames.tables import Tables

log = Log(bootstrap=sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092")
spark_session = session("a look back")
spark_session.sparkContext.setLogLevel("ERROR")

# %% The frames: messages, journal, deliveries, dead_letters, queues, unread. Each is a view too;
# nothing is read before it is asked for.
tables = Tables(spark_session, log)
tables.create_views()

# %% How many messages each queue has, and how large they are.
spark_session.sql("""
    SELECT queue, status, count(*) AS messages, round(avg(body_bytes)) AS mean_bytes,
           min(sent_at) AS first, max(sent_at) AS last
    FROM messages GROUP BY queue, status ORDER BY queue, status
""").show(truncate=False)

# %% Which tags make their messages wait, and how their deliveries end.
spark_session.sql("""
    SELECT queue, tag, how, count(*) AS deliveries,
           percentile_approx(wait_ms, 0.5) AS wait_p50_ms, percentile_approx(lease_ms, 0.99) AS lease_p99_ms
    FROM deliveries GROUP BY queue, tag, how ORDER BY queue, tag, deliveries DESC
""").show(truncate=False)

# %% Why messages died. What is chosen here can be sent back: `leaseway redrive --where "<the
# condition>"`.
spark_session.sql("""
    SELECT queue, source_queue, reason, count(*) AS dead_letters, count_if(settled_how IS NULL) AS at_rest
    FROM dead_letters GROUP BY queue, source_queue, reason ORDER BY dead_letters DESC
""").show(truncate=False)

# %% The same functions that the report uses take any frame of the right columns: here, only what
# was delivered more than once.
from spark.reports.redelivery import redelivery

redelivery(tables.deliveries().where("queue NOT LIKE '%.dead'")).orderBy("queue", "tag").show(truncate=False)

# %%
spark_session.stop()
