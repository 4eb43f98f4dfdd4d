"""Trains a logistic regression with scikit-learn and prints what it took.

Arguments: directory, rows, features, features that are not 0 in a row (0: dense), solver
(lbfgs or liblinear), penalty (l1 or l2). The number of threads comes from OMP_NUM_THREADS.
"""

import json
import os
import sys
import time
import warnings

import numpy
import scipy.sparse
from sklearn.linear_model import LogisticRegression, _logistic

directory, rows, features, per_row, solver, penalty = sys.argv[1], *map(int, sys.argv[2:5]), *sys.argv[5:]
warnings.filterwarnings("ignore")


def read(name, kind):
    return numpy.fromfile(os.path.join(directory, name), dtype=kind)


y = read("labels", "<f8")
x = read("values", "<f8")
if per_row:
    at = numpy.arange(rows + 1, dtype=numpy.int32) * per_row
    x = scipy.sparse.csr_matrix((x, read("indices", "<i4"), at), shape=(rows, features))
else:
    x = x.reshape(rows, features)


def objective(w):
    m = x @ w
    loss = numpy.logaddexp(0, numpy.where(y > 0, -m, m)).mean()
    return float(loss + (numpy.abs(w).sum() if penalty == "l1" else 0.5 * w @ w) / rows)


trace = []
if solver == "lbfgs":
    minimize = _logistic.optimize.minimize

    def watched(*args, **kwargs):
        def callback(intermediate_result):
            trace.append((time.perf_counter() - began, float(intermediate_result.fun)))
        return minimize(*args, **(kwargs | {"callback": callback}))

    class Optimize:
        def __getattr__(self, name):
            return watched if name == "minimize" else getattr(original, name)

    original, _logistic.optimize = _logistic.optimize, Optimize()
    model = LogisticRegression(C=1, fit_intercept=False, tol=1e-9, max_iter=1000)
    began = time.perf_counter()
    model.fit(x, y)
    last = objective(model.coef_.ravel())
    if abs(last - trace[-1][1]) > 1e-9 * abs(last):
        sys.exit(f"the objective is {last}, the callback saw {trace[-1][1]}")
else:
    previous = None
    for tolerance in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        model = LogisticRegression(C=1, l1_ratio=1.0 if penalty == "l1" else 0.0, fit_intercept=False, solver="liblinear",
                                   tol=tolerance, max_iter=10000)
        began = time.perf_counter()
        model.fit(x, y)
        trace.append((time.perf_counter() - began, objective(model.coef_.ravel())))
        if previous is not None and previous - trace[-1][1] <= 1e-8 * abs(previous):
            break
        previous = trace[-1][1]
with open("/proc/self/status") as status:
    peak = next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:")), 0)
print(json.dumps({"trace": [{"seconds": s, "objective": f} for s, f in trace], "method": solver, "peak": peak}))
