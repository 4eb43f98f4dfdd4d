"""Trains a logistic regression with SGDClassifier of scikit-learn and prints what it took.

Arguments: directory, rows, features, epochs, schedule (constant, invscaling or optimal), initial
learning rate, L2 penalty. Rows are dense. SGDClassifier uses one thread.
"""

import json
import os
import sys
import time

import numpy
from sklearn.linear_model import SGDClassifier

directory, rows, features, epochs, schedule, rate, penalty = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5], *map(float, sys.argv[6:8])


def read(name):
    return numpy.fromfile(os.path.join(directory, name), dtype="<f8")


y, x = read("labels"), read("values").reshape(rows, features)
model = SGDClassifier(loss="log_loss", alpha=penalty, max_iter=epochs, tol=None, learning_rate=schedule, eta0=rate, power_t=0.5, random_state=1)
began = time.perf_counter()
model.fit(x, y)
took = time.perf_counter() - began
w = model.coef_.ravel()
m = x @ w + model.intercept_[0]
objective = float(numpy.logaddexp(0, numpy.where(y > 0, -m, m)).mean() + 0.5 * penalty * w @ w)
with open("/proc/self/status") as status:
    peak = next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:")), 0)
print(json.dumps({"trace": [{"seconds": took, "objective": objective}], "method": "SGD", "peak": peak}))
