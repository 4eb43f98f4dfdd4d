"""Trains a logistic regression with Spark MLlib in local mode and prints what it took.

Arguments: directory, rows, features, features that are not 0 in a row (0: dense), penalty
(l1 or l2), threads. Spark reports the objective of each iteration but not its time, so
the time of fit is divided evenly among the iterations.
"""

import json
import os
import sys
import time

import numpy
import pyspark
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.functions import array_to_vector
from pyspark.ml.linalg import SparseVector, VectorUDT
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

directory, rows, features, per_row, penalty, threads = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5], int(sys.argv[6])
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (SparkSession.builder.master(f"local[{threads}]").config("spark.driver.memory", "8g").config("spark.ui.enabled", "false")
         .config("spark.sql.execution.arrow.pyspark.enabled", "true").config("spark.driver.maxResultSize", "4g").getOrCreate())
spark.sparkContext.setLogLevel("ERROR")


def part(at):
    """Rows of a partition, read from the files by the worker itself."""
    lo, hi = rows * at // partitions, rows * (at + 1) // partitions
    width = per_row or features

    def cut(name, kind, each):
        size = numpy.dtype(kind).itemsize
        return numpy.fromfile(os.path.join(directory, name), dtype=kind, offset=lo * each * size, count=(hi - lo) * each)

    y, x = cut("labels", "<f8", 1), cut("values", "<f8", width).reshape(-1, width)
    if not per_row:
        return [(float(v), r.tolist()) for v, r in zip(y, x)]
    at = cut("indices", "<i4", width).reshape(-1, width)
    return [(float(v), SparseVector(features, i, r)) for v, i, r in zip(y, at, x)]


partitions = 2 * threads
kind = VectorUDT() if per_row else t.ArrayType(t.DoubleType())
schema = t.StructType([t.StructField("label", t.DoubleType()), t.StructField("features", kind)])
data = spark.createDataFrame(spark.sparkContext.parallelize(range(partitions), partitions).flatMap(part), schema)
if not per_row:
    data = data.select("label", array_to_vector(f.col("features")).alias("features"))
data = data.persist(pyspark.StorageLevel.MEMORY_ONLY)
data.count()
model = LogisticRegression(regParam=1 / rows, elasticNetParam=1.0 if penalty == "l1" else 0.0, fitIntercept=False,
                           standardization=False, tol=1e-9, maxIter=1000)
model.copy({model.maxIter: 2}).fit(data)  # warms up the just-in-time compiler
began = time.perf_counter()
fitted = model.fit(data)
seconds = time.perf_counter() - began
history = fitted.summary.objectiveHistory
trace = [{"seconds": seconds * (i + 1) / len(history), "objective": v} for i, v in enumerate(history)]
print(json.dumps({"trace": trace, "method": "spark", "peak": 0}))
