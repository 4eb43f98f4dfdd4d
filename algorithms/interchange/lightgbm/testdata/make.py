"""Makes the models of a folder named like the version of lightgbm at hand, and what they
predict. The rows are drawn here, so that they have no origin but this file.

    python make.py            # with lightgbm 2.3.1, 3.3.5 and 4.7.0 in turn
"""
import json, os, warnings
import numpy as np, lightgbm as lgb

warnings.filterwarnings("ignore")
here = os.path.dirname(os.path.abspath(__file__))
version = tuple(int(v) for v in lgb.__version__.split(".")[:2])
folder = os.path.join(here, lgb.__version__)
os.makedirs(folder, exist_ok=True)

draw = np.random.RandomState(6)
n, shown = 400, 30
x = np.round(draw.randn(n, 5), 2)
x[:, 3] = draw.randint(0, 3, n)  # few values, many zeros
x[:, 4] = draw.randint(0, 40, n)  # categories
z = x[:, 0] - np.abs(x[:, 1]) + 0.5 * x[:, 3] + np.sin(x[:, 4] * 1.7) + 0.3 * draw.randn(n)
x[draw.rand(n, 5) < 0.15] = np.nan
full = np.nan_to_num(x)
rows = x[:shown].copy()
rows[0, 4], rows[1, 4], rows[2, 4] = 77, 39, -1  # not seen, the largest, negative
rows[3, 0], rows[4, 1], rows[5, 2], rows[6, 3] = 0, 0, np.inf, -np.inf

third = np.digitize(z, np.quantile(z, [0.33, 0.67]))
labels = {
    "real": z, "bit": (z > 0).astype(int), "class": third, "positive": np.exp(z / 2),
    "count": np.floor(np.exp(z / 2)), "share": 1 / (1 + np.exp(-z)),
}

cases = {}
often = "binary multiclass ova categories zero none nomissing rf dart sqrt poisson monotone constant custom".split()
def case(name, label, rounds=3, data=x, **params):
    if version >= (4, 0) or name in often:  # files differ little between versions
        cases[name] = (label, rounds, data, {"num_leaves": 6, "learning_rate": 0.3, "min_data_in_leaf": 10, "seed": 7,
            "verbose": -1, "num_threads": 1, **params})

case("regression", "real", objective="regression")
case("regression-plain", "real", objective="regression", boost_from_average=False)
case("sqrt", "count", objective="regression", reg_sqrt=True)
case("l1", "real", objective="regression_l1")
case("huber", "real", objective="huber")
case("fair", "real", objective="fair")
case("quantile", "real", objective="quantile", alpha=0.7)
case("mape", "positive", objective="mape")
case("poisson", "count", objective="poisson")
case("gamma", "positive", objective="gamma")
case("tweedie", "count", objective="tweedie", tweedie_variance_power=1.3)
case("binary", "bit", objective="binary")
case("binary-sigmoid", "bit", objective="binary", sigmoid=0.7)
case("entropy", "share", objective="cross_entropy")
case("entropylambda", "share", objective="cross_entropy_lambda")
case("multiclass", "class", objective="multiclass", num_class=3)
case("ova", "class", objective="multiclassova", num_class=3, sigmoid=1.3)
case("lambdarank", "count", objective="lambdarank")
case("xendcg", "count", objective="rank_xendcg")
case("zero", "bit", objective="binary", zero_as_missing=True)
case("none", "bit", objective="binary", data=full)
case("nomissing", "bit", objective="binary", use_missing=False)
case("categories", "real", objective="regression", min_data_per_group=5, max_cat_to_onehot=2)
case("onehot", "bit", objective="binary", min_data_per_group=5, max_cat_to_onehot=64)
case("rf", "real", objective="regression", boosting="rf", bagging_freq=1, bagging_fraction=0.6)
case("rf-multiclass", "class", objective="multiclass", num_class=3, boosting="rf", bagging_freq=1, bagging_fraction=0.6)
case("dart", "real", rounds=8, objective="regression", boosting="dart", drop_rate=0.5)
case("goss", "bit", objective="binary", boosting="goss")
case("constant", "bit", objective="binary", min_data_in_leaf=500)
case("monotone", "real", objective="regression", monotone_constraints=[1, -1, 0, 0, 0])
case("custom", "real")

expected = {"rows": [[None if np.isnan(v) else str(v) for v in row] for row in rows], "cases": {}}
for name, (label, rounds, data, params) in cases.items():
    categorical = [4] if name in ("categories", "onehot") else []
    train = lgb.Dataset(data, label=labels[label], categorical_feature=categorical, free_raw_data=False)
    if name in ("lambdarank", "xendcg"):
        train.set_group([20] * (n // 20))
    if name == "custom":
        grad = lambda s, d: (s - d.get_label(), np.ones(len(s)))
        booster = (lgb.train({**params, "objective": grad}, train, rounds) if version >= (4, 0)
                   else lgb.train({**params, "objective": "none"}, train, rounds, fobj=grad))
    else:
        booster = lgb.train(params, train, rounds)
    booster.save_model(os.path.join(folder, f"{name}.txt"))
    again = lgb.Booster(model_file=os.path.join(folder, f"{name}.txt"))
    trees = booster.num_trees()
    expected["cases"][name] = {
        "trees": trees,
        "raw": np.asarray(again.predict(rows, raw_score=True)).ravel().tolist(),
        "prediction": np.asarray(again.predict(rows)).ravel().tolist(),
        "leaf": np.asarray(again.predict(rows, pred_leaf=True)).astype(int).reshape(shown, -1).tolist(),
    }
with open(os.path.join(folder, "expected.json"), "w") as f:
    json.dump(expected, f, separators=(",", ":"))
print(lgb.__version__, len(cases), "cases")
