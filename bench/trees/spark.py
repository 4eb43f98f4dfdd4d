"""Trains gradient-boosted trees with Spark MLlib in local mode and prints what it took.

Arguments: directory, rows, features, features that are not 0 in a row (0: dense), threads,
rounds. Training begins with the rows cached in the virtual machine and its just-in-time
compiler warmed up, and ends with the model.
"""

import json
import os
import sys
import time

import numpy
import pyspark
from pyspark.ml.classification import GBTClassifier
from pyspark.ml.functions import array_to_vector, vector_to_array
from pyspark.ml.linalg import SparseVector, VectorUDT
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from sklearn.metrics import log_loss, roc_auc_score

directory, rows, features, per_row, threads, rounds = sys.argv[1], *map(int, sys.argv[2:7])
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (SparkSession.builder.master(f"local[{threads}]").config("spark.driver.memory", "8g").config("spark.ui.enabled", "false")
         .config("spark.ui.showConsoleProgress", "false")
         .config("spark.sql.execution.arrow.pyspark.enabled", "true").config("spark.driver.maxResultSize", "4g").getOrCreate())
spark.sparkContext.setLogLevel("ERROR")
partitions = 2 * threads


def table(folder, rows):
    """Rows as a cached data frame; the workers read them from the files."""

    def part(at):
        lo, hi = rows * at // partitions, rows * (at + 1) // partitions
        width = per_row or features

        def cut(name, kind, each):
            size = numpy.dtype(kind).itemsize
            return numpy.fromfile(os.path.join(folder, name), dtype=kind, offset=lo * each * size, count=(hi - lo) * each)

        y, x = cut("labels", "<f8", 1), cut("values", "<f8", width).reshape(-1, width)
        if not per_row:
            return [(float(v), r.tolist()) for v, r in zip(y, x)]
        at = cut("indices", "<i4", width).reshape(-1, width)
        return [(float(v), SparseVector(features, i, r)) for v, i, r in zip(y, at, x)]

    kind = VectorUDT() if per_row else t.ArrayType(t.DoubleType())
    schema = t.StructType([t.StructField("label", t.DoubleType()), t.StructField("features", kind)])
    data = spark.createDataFrame(spark.sparkContext.parallelize(range(partitions), partitions).flatMap(part), schema)
    if not per_row:
        data = data.select("label", array_to_vector(f.col("features")).alias("features"))
    data = data.persist(pyspark.StorageLevel.MEMORY_ONLY)
    data.count()
    return data


def probability(model, data):
    return model.transform(data).select("label", vector_to_array("probability")[1].alias("p"))


data = table(directory, rows)
boosting = GBTClassifier(maxIter=rounds, maxDepth=6, maxBins=256, stepSize=0.1, minInstancesPerNode=1, seed=1)
boosting.copy({boosting.maxIter: 2}).fit(data)
began = time.perf_counter()
model = boosting.fit(data)
trained = time.perf_counter() - began
began = time.perf_counter()
probability(model, data).agg(f.sum("p")).collect()
predicted = time.perf_counter() - began
others = probability(model, table(os.path.join(directory, "test"), max(1, rows // 10))).toPandas()
print(json.dumps({"train": trained, "predict": predicted, "peak": 0, "log_loss": log_loss(others.label, others.p),
                  "auc": roc_auc_score(others.label, others.p)}))
