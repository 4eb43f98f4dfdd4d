"""Trains k-means with scikit-learn on a file of rows and prints what it took.

Arguments: file, rows, features, clusters, moves, algorithm (lloyd or elkan). The number of threads comes from
OMP_NUM_THREADS. Seconds per pass are the difference of a fit of all moves and one
of a single move, so that checks, copies and the last labelling do not count.
"""

import json
import sys
import time
import warnings

import numpy
from sklearn.cluster import KMeans

file, rows, features, clusters, moves = sys.argv[1], *map(int, sys.argv[2:6])
warnings.filterwarnings("ignore")  # scikit-learn warns that it did not converge, which is intended


def fit(x, iterations):
    began = time.perf_counter(), time.process_time()
    model = KMeans(clusters, init=x[:clusters].copy(), n_init=1, max_iter=iterations,
                   tol=0, algorithm=sys.argv[6]).fit(x)
    if model.n_iter_ != iterations:
        sys.exit(f"scikit-learn stopped after {model.n_iter_} of {iterations} iterations")
    return model, time.perf_counter() - began[0], time.process_time() - began[1]


began = time.perf_counter()
x = numpy.fromfile(file, dtype="<f8").reshape(rows, features)
model, wall, cpu = fit(x, moves)
total = time.perf_counter() - began
with open("/proc/self/status") as status:
    peak = next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:")), 0)
if moves > 1:
    _, wall1, cpu1 = fit(x, 1)
    wall, cpu = (wall - wall1) / (moves - 1), (cpu - cpu1) / (moves - 1)
print(json.dumps({"pass": wall, "cpu": cpu, "total": total, "peak": peak,
                  "inertia": model.inertia_, "centers": model.cluster_centers_.tolist()}))
