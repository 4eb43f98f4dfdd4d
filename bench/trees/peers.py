"""Trains trees with XGBoost, LightGBM or scikit-learn and prints what it took.

Arguments: directory, rows, features, features that are not 0 in a row (0: dense), library
(xgboost, lightgbm or scikit-learn), threads, rounds, policy (depth, leaf or forest), number
of pieces of the rows, which XGBoost keeps in files (0: one piece in memory).
"""

import json
import os
import sys
import time
import warnings

import numpy
import scipy.sparse
from sklearn.metrics import log_loss, roc_auc_score

directory, rows, features, per_row, library, threads, rounds, policy, pieces = (
    sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5], *map(int, sys.argv[6:8]), sys.argv[8], int(sys.argv[9]))
warnings.filterwarnings("ignore")
if library == "xgboost":
    import xgboost
elif library == "lightgbm":
    import lightgbm
else:
    from sklearn.ensemble import RandomForestClassifier


def read(folder, rows):
    def array(name, kind):
        path = os.path.join(folder, name)
        return numpy.memmap(path, dtype=kind, mode="r") if pieces else numpy.fromfile(path, dtype=kind)

    y = array("labels", "<f8")
    x = array("values", "<f8")
    if per_row:
        at = numpy.arange(rows + 1, dtype=numpy.int32) * per_row
        x = scipy.sparse.csr_matrix((x, array("indices", "<i4"), at), shape=(rows, features))
    else:
        x = x.reshape(rows, features)
    return x, y


def status(field):
    with open("/proc/self/status") as lines:
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field)), 0)


def in_pieces():
    class Pieces(xgboost.DataIter):
        def __init__(self):
            self.at = 0
            super().__init__(cache_prefix=os.path.join(directory, "xgboost"))

        def next(self, input_data):
            if self.at == pieces:
                return False
            part = slice(rows * self.at // pieces, rows * (self.at + 1) // pieces)
            input_data(data=numpy.asarray(x[part]) if not per_row else x[part], label=y[part])
            self.at += 1
            return True

        def reset(self):
            self.at = 0

    return xgboost.ExtMemQuantileDMatrix(Pieces(), max_bin=256, nthread=threads)


x, y = read(directory, rows)
loaded = status("VmRSS:")
began = time.perf_counter()
if library == "xgboost":
    data = in_pieces() if pieces else xgboost.QuantileDMatrix(x, label=y, max_bin=256, nthread=threads)
    params = {"tree_method": "hist", "max_bin": 256, "objective": "binary:logistic", "eta": 0.1, "lambda": 1,
              "min_child_weight": 1, "nthread": threads}
    params |= {"max_depth": 6} if policy == "depth" else {"grow_policy": "lossguide", "max_leaves": 255, "max_depth": 0}
    model = xgboost.train(params, data, num_boost_round=rounds)
elif library == "lightgbm":
    data = lightgbm.Dataset(x, label=y, params={"max_bin": 255, "num_threads": threads, "verbosity": -1})
    params = {"objective": "binary", "learning_rate": 0.1, "lambda_l2": 1, "min_sum_hessian_in_leaf": 1,
              "min_data_in_leaf": 1, "max_bin": 255, "num_threads": threads, "verbosity": -1}
    params |= {"max_depth": 6, "num_leaves": 64} if policy == "depth" else {"num_leaves": 255}
    model = lightgbm.train(params, data, num_boost_round=rounds)
else:
    model = RandomForestClassifier(n_estimators=rounds, n_jobs=threads, random_state=1)
    model.fit(x, y)
trained = time.perf_counter() - began
peak = 0 if pieces else status("VmHWM:") - loaded  # with pieces, the peak would include mapped files


def predict(x):
    if library == "xgboost":
        return model.inplace_predict(x)
    if library == "lightgbm":
        return model.predict(x, num_threads=threads)
    return model.predict_proba(x)[:, 1]


began = time.perf_counter()
predict(x)
predicted = time.perf_counter() - began
x, y = read(os.path.join(directory, "test"), max(1, rows // 10))
p = predict(x).astype(float)
print(json.dumps({"train": trained, "predict": predicted, "peak": peak, "log_loss": log_loss(y, p), "auc": roc_auc_score(y, p)}))
