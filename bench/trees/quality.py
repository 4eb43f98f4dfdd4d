"""Compares the quality of boosted trees on test rows with XGBoost's and LightGBM's.

    python bench/trees/quality.py PROGRAM FOLDER [PROBLEM ...] [--splits 10] [--seed 100]

PROGRAM is the superstep command. FOLDER contains, at any depth, the example files of LightGBM
(binary, multiclass and rank, .train and .test, rank.train.query), those of XGBoost
(agaricus.txt.train and .test, machine.data) and UCI's abalone.csv.

Each set is split at random, ten times, into 80 % to train on and 20 % to measure on; rank
is split by queries. All three train on the same rows with the same settings: 100 rounds, rate 0.1, depth
6, at most 255 bins, an L2 penalty of 1, a minimum sum of hessians of 1, one row in a leaf. The output
is the mean relative difference of the metric over the splits, above 0 where superstep is better,
with the half width of its 95 % interval.
"""

import argparse
import pathlib
import subprocess
import tempfile

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from scipy.stats import t
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import log_loss, ndcg_score

ROUNDS = 100
NAMES = {  # names of objectives in the other libraries
    "xgboost": {"logistic": "binary:logistic", "softmax": "multi:softprob", "squared": "reg:squarederror", "lambdamart": "rank:ndcg"},
    "lightgbm": {"logistic": "binary", "softmax": "multiclass", "squared": "regression", "lambdamart": "lambdarank"},
}


def problems(folder):
    """Returns objective, features, labels and queries by name."""
    def find(name):
        return str(next(pathlib.Path(folder).rglob(name)))

    def table(name):
        parts = [pd.read_csv(find(name + end), sep="\t", header=None) for end in (".train", ".test")]
        rows = pd.concat(parts, ignore_index=True).values
        return rows[:, 1:], rows[:, 0]

    mushrooms = [load_svmlight_file(find("agaricus.txt" + end), n_features=127) for end in (".train", ".test")]
    abalone = pd.read_csv(find("abalone.csv"), header=None)
    abalone[0] = abalone[0].astype("category").cat.codes
    machine = pd.read_csv(find("machine.data"), header=None)
    pages, relevance = load_svmlight_file(find("rank.train"))
    sizes = np.loadtxt(find("rank.train.query"), dtype=int)
    return {
        "higgs": ("logistic", *table("binary"), None),
        "agaricus": ("logistic", np.vstack([x.toarray() for x, _ in mushrooms]), np.concatenate([y for _, y in mushrooms]), None),
        "five classes": ("softmax", *table("multiclass"), None),
        "abalone": ("squared", abalone.values[:, :-1].astype(float), abalone.values[:, -1].astype(float), None),
        "machine": ("squared", machine.values[:, 2:8].astype(float), machine.values[:, 8].astype(float), None),
        "rank": ("lambdamart", pages.toarray(), relevance, np.repeat(np.arange(len(sizes)), sizes)),
    }


def superstep(program, objective, x, y, queries, other):
    names = [f"f{i}" for i in range(x.shape[1])]
    rows = pd.DataFrame(x, columns=names)
    rows["label"] = y if objective == "squared" else y.astype(int)
    flags = []
    if queries is not None:
        rows["query"], flags = queries, ["--group", "query"]
    with tempfile.TemporaryDirectory() as at:
        rows.to_csv(at + "/train.csv", index=False)
        pd.DataFrame(other, columns=names).to_csv(at + "/other.csv", index=False)
        for line in (
            ["train", "gbdt", "--input", at + "/train.csv", "--label", "label", "--features", ",".join(names),
             "--objective", objective, "--rounds", str(ROUNDS), "--model", at + "/model.json", *flags],
            ["predict", "--model", at + "/model.json", "--input", at + "/other.csv", "--output", at + "/predicted.csv"],
        ):
            subprocess.run([program, *line, "--progress", "off"], check=True, stdout=subprocess.DEVNULL)
        made = pd.read_csv(at + "/predicted.csv")
    if objective in ("logistic", "softmax"):
        return made[[c for c in made.columns if c.startswith("probability")]].values
    return made["prediction"].values


def peer(library, objective, x, y, queries, other):
    sizes = None if queries is None else np.unique(queries, return_counts=True)[1]
    classes = {"num_class": int(y.max()) + 1} if objective == "softmax" else {}
    both = {"learning_rate": 0.1, "max_depth": 6, "max_bin": 255, "objective": NAMES[library][objective], **classes}
    if library == "xgboost":
        rows = xgboost.DMatrix(x, label=y)
        if sizes is not None:
            rows.set_group(sizes)
        made = xgboost.train({**both, "tree_method": "hist", "nthread": 1}, rows, ROUNDS).predict(xgboost.DMatrix(other))
    else:
        own = {"num_leaves": 64, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 1, "lambda_l2": 1, "min_data_in_bin": 1,
               "num_threads": 1, "verbose": -1}
        made = lightgbm.train({**both, **own}, lightgbm.Dataset(x, label=y, group=sizes), ROUNDS).predict(other)
    return np.column_stack([1 - made, made]) if objective == "logistic" else made


def loss(objective, y, made, queries):
    """Returns the log-loss, the root of the mean squared error, or 1 less NDCG@5."""
    if objective in ("logistic", "softmax"):
        return log_loss(y, np.clip(made, 1e-15, 1), labels=range(made.shape[1]))
    if objective == "squared":
        return np.sqrt(np.mean((y - made) ** 2))
    gains = [(2.0 ** y[queries == q] - 1, made[queries == q]) for q in np.unique(queries)]
    return 1 - np.mean([ndcg_score([g], [s], k=5) if len(g) > 1 and g.max() > 0 else 1.0 for g, s in gains])


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("program")
    flags.add_argument("folder")
    flags.add_argument("problem", nargs="*")
    flags.add_argument("--splits", type=int, default=10)
    flags.add_argument("--seed", type=int, default=100)
    given = flags.parse_args()
    for name, (objective, x, y, queries) in problems(given.folder).items():
        if given.problem and name not in given.problem:
            continue
        losses = []
        for split in range(given.splits):
            draw = np.random.default_rng(given.seed + split)
            if queries is None:
                out = draw.permutation(len(y)) < len(y) // 5
            else:
                all_queries = np.unique(queries)
                out = np.isin(queries, draw.permutation(all_queries)[: len(all_queries) // 5])
            task = (objective, x[~out], y[~out], None if queries is None else queries[~out], x[out])
            made = [superstep(given.program, *task), peer("xgboost", *task), peer("lightgbm", *task)]
            losses.append([loss(objective, y[out], m, None if queries is None else queries[out]) for m in made])
        losses = np.array(losses)
        if objective == "lambdamart":  # compare shares of NDCG, not of 1 - NDCG
            losses = losses - 1
        for i, library in enumerate(("XGBoost", "LightGBM"), start=1):
            d = (losses[:, i] - losses[:, 0]) / np.abs(losses[:, i])
            half = t.ppf(0.975, given.splits - 1) * d.std(ddof=1) / np.sqrt(given.splits)
            mine, other = np.abs(losses[:, [0, i]].mean(axis=0))
            print(f"{name}: {mine:.5g}, {library} {other:.5g}: {100 * d.mean():+.2f} % ± {100 * half:.2f}", flush=True)


main()
