"""Runs other libraries for the tests of this folder: it reads a list of tasks from one JSON
file and writes a list of answers to another.

    python worker.py tasks.json answers.json

Rows have null where a value is missing and text where JSON has no number for it (inf). Tasks
need Python, numpy and the libraries that they name: xgboost, lightgbm or onnxruntime.
"""
import json, sys, traceback, warnings

import numpy as np

warnings.filterwarnings("ignore")


def table(rows):
    return np.array([[np.nan if v is None else float(v) for v in row] for row in rows], dtype=float)


def flat(a):
    return np.asarray(a, dtype=float).ravel().tolist()


def xgboost(task):
    import xgboost as xgb

    x = table(task["rows"]).astype(np.float32)
    extra = {"feature_names": task["names"]} if task.get("names") else {}
    if task.get("types"):
        extra.update(feature_types=task["types"], enable_categorical="c" in task["types"])
    if task.get("sparse"):  # what is missing is not there
        import scipy.sparse as sp

        at = ~np.isnan(x)
        rows = sp.csr_matrix((x[at], np.nonzero(at)[1], np.concatenate([[0], np.cumsum(at.sum(axis=1))])), shape=x.shape)
    else:
        rows = x
    if task["do"] == "train":
        data = xgb.DMatrix(rows, label=np.array(task["label"]), **extra)
        if task.get("group"):
            data.set_group(task["group"])
        if task["params"]["objective"] == "survival:aft":
            data.set_float_info("label_lower_bound", np.array(task["label"]))
            data.set_float_info("label_upper_bound", np.array(task["label"]) + 1)
        booster = xgb.train(task["params"], data, task["rounds"])
        booster.save_model(task["model"])
    else:
        booster = xgb.Booster(model_file=task["model"])
    data = xgb.DMatrix(rows, **extra)
    return {
        "version": xgb.__version__,
        "margin": flat(booster.predict(data, output_margin=True)),
        "prediction": flat(booster.predict(data)),
        "rounds": booster.num_boosted_rounds(),
    }


def lightgbm(task):
    import lightgbm as lgb

    x = table(task["rows"])
    if task["do"] == "train":
        data = lgb.Dataset(x, label=np.array(task["label"]), group=task.get("group"),
            categorical_feature=task.get("categorical", []))
        lgb.train({**task["params"], "verbose": -1, "num_threads": 1}, data, task["rounds"]).save_model(task["model"])
    booster = lgb.Booster(model_file=task["model"])
    rows = x
    if task.get("sparse"):
        import scipy.sparse as sp

        rows = sp.csr_matrix(np.nan_to_num(x, nan=0.0))
    return {
        "version": lgb.__version__,
        "margin": flat(booster.predict(rows, raw_score=True)),
        "prediction": flat(booster.predict(rows)),
        "rounds": booster.num_trees(),
    }


def onnx(task):
    import onnxruntime

    session = onnxruntime.InferenceSession(task["model"])
    feed = {}
    for node in session.get_inputs():
        values = task["columns"][node.name]
        if node.type == "tensor(string)":
            feed[node.name] = np.array([[v] for v in values], dtype=object)
        else:
            kind = np.float32 if node.type == "tensor(float)" else np.float64
            feed[node.name] = table([[v] for v in values]).astype(kind)
    names = [node.name for node in session.get_outputs()]
    made = dict(zip(names, session.run(None, feed)))
    return {
        "version": onnxruntime.__version__,
        "texts": [str(v) for v in made["prediction"].ravel()],
        "prediction": [] if made["prediction"].dtype == object else flat(made["prediction"]),
        "margin": flat(made.get("probability", [])),
    }


answers = []
for task in json.load(open(sys.argv[1])):
    try:
        answers.append({"xgboost": xgboost, "lightgbm": lightgbm, "onnx": onnx}[task["library"]](task))
    except Exception:
        answers.append({"error": traceback.format_exc(limit=2)[-2000:]})
json.dump(answers, open(sys.argv[2], "w"))
