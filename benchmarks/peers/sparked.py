"""A Spark of this process alone, for Tumult Analytics."""

import atexit
import os
import shutil
import sys
import tempfile


def started(cores=2, memory="6g"):
    """Start Spark with the folders for its tables and files removed at the end."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["SPARK_LOCAL_DIRS"] = folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": memory,
        "spark.sql.warehouse.dir": os.path.join(folder, "warehouse"),
        "spark.sql.shuffle.partitions": 2 * cores,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{cores}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def processes(spark):
    """Return the processes of Python and of Java."""
    return [os.getpid(), spark.sparkContext._gateway.proc.pid]
