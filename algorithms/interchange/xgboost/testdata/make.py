"""Makes the models of a folder named like the version of xgboost at hand, and what they
predict. The rows are drawn here, so that they have no origin but this file.

    python make.py            # with xgboost 1.7.6, 2.1.4 and 3.2.0 in turn
"""
import json, os, warnings
import numpy as np, xgboost as xgb

warnings.filterwarnings("ignore")
here = os.path.dirname(os.path.abspath(__file__))
version = tuple(int(v) for v in xgb.__version__.split(".")[:2])
folder = os.path.join(here, xgb.__version__)
os.makedirs(folder, exist_ok=True)

draw = np.random.RandomState(6)
n, shown = 240, 30
x = np.round(draw.randn(n, 5), 2).astype(np.float32)
x[:, 3] = draw.randint(0, 3, n)  # few values
x[:, 4] = draw.randint(0, 40, n)  # categories
z = x[:, 0] - np.abs(x[:, 1]) + 0.5 * x[:, 3] + np.sin(x[:, 4] * 1.7) + 0.3 * draw.randn(n)
x[draw.rand(n, 5) < 0.15] = np.nan
rows = x[:shown].copy()
rows[0, 4], rows[1, 4] = 77, 39  # a category that training has not seen, and the largest
numbers = ["q"] * 3 + ["int", "c"]

third = np.digitize(z, np.quantile(z, [0.33, 0.67]))
labels = {
    "real": z, "bit": (z > 0).astype(int), "class": third, "positive": np.exp(z / 2),
    "count": np.floor(np.exp(z / 2)), "two": np.stack([z, -z + x[:, 3].clip(0)], axis=1),
}
labels["two"] = np.nan_to_num(labels["two"])

cases = {}
def case(name, label, rounds=3, since=(0, 0), **params):
    if version >= since:
        cases[name] = (label, rounds, {"max_depth": 3, "eta": 0.5, "tree_method": "hist", "seed": 7, **params})

case("squared", "real", objective="reg:squarederror")
case("logistic", "bit", objective="binary:logistic", scale_pos_weight=2)
case("logistic-base", "bit", objective="binary:logistic", base_score=0.97)
case("reglogistic", "bit", objective="reg:logistic")
case("logitraw", "bit", objective="binary:logitraw", base_score=0.3)
case("hinge", "bit", objective="binary:hinge", base_score=0.5)
case("softprob", "class", objective="multi:softprob", num_class=3)
case("softmax", "class", objective="multi:softmax", num_class=3)
case("poisson", "count", objective="count:poisson", max_delta_step=0.6)
case("gamma", "positive", objective="reg:gamma")
case("tweedie", "count", objective="reg:tweedie", tweedie_variance_power=1.3)
case("cox", "positive", objective="survival:cox")
case("aft", "positive", objective="survival:aft", aft_loss_distribution="logistic", aft_loss_distribution_scale=1.2)
case("absolute", "real", objective="reg:absoluteerror")
case("pseudohuber", "real", objective="reg:pseudohubererror", huber_slope=0.7)
case("squaredlog", "count", objective="reg:squaredlogerror")
case("quantile", "real", since=(2, 0), objective="reg:quantileerror", quantile_alpha=[0.2, 0.5, 0.9])
case("pairwise", "count", objective="rank:pairwise")
case("ndcg", "count", objective="rank:ndcg")
case("map", "bit", objective="rank:map")
case("two", "two", objective="reg:squarederror")
case("dart", "real", rounds=5, objective="reg:squarederror", booster="dart", rate_drop=0.5)
case("dart-softprob", "class", rounds=4, objective="multi:softprob", num_class=3, booster="dart", rate_drop=0.5)
case("parallel", "class", rounds=2, objective="multi:softprob", num_class=3, num_parallel_tree=2, subsample=0.6)
case("pruned", "real", objective="reg:squarederror", tree_method="exact", gamma=12, max_depth=5)
case("lossguide", "bit", objective="binary:logistic", grow_policy="lossguide", max_leaves=7, max_depth=0)
case("categories", "real", objective="reg:squarederror", max_cat_to_onehot=1)
case("onehot", "bit", objective="binary:logistic", max_cat_to_onehot=64)
case("named", "real", rounds=6, objective="reg:squarederror")
case("constant", "bit", rounds=1, objective="binary:logistic", min_child_weight=1e9)

expected = {"rows": [[None if np.isnan(v) else float(v) for v in row] for row in rows], "cases": {}}
for name, (label, rounds, params) in cases.items():
    categorical = name in ("categories", "onehot")
    extra = {"feature_types": numbers, "enable_categorical": True} if categorical else {}
    if name == "named":
        extra = {"feature_names": ["a", "b b", 'c"\\', "ä→", "e"], "feature_types": ["float", "q", "float", "int", "float"]}
    data = xgb.DMatrix(x, label=labels[label], **extra)
    if params["objective"].startswith("rank:"):
        data.set_group([10] * (n // 10))
    if params["objective"] == "survival:aft":
        data.set_float_info("label_lower_bound", labels[label])
        data.set_float_info("label_upper_bound", np.where(labels["bit"] == 1, labels[label], np.inf))
    more = {}
    if name == "named":
        more = {"evals": [(xgb.DMatrix(x[:50], label=z[:50], **extra), "e")], "early_stopping_rounds": 2, "verbose_eval": False}
    booster = xgb.train(params, data, rounds, **more)
    test = xgb.DMatrix(rows, **extra)
    for form in (["json", "ubj"] if name in ("logistic", "dart-softprob", "categories", "softprob") else ["json"]):
        booster.save_model(os.path.join(folder, f"{name}.{form}"))
    expected["cases"][name] = {
        "objective": params["objective"],
        "rounds": booster.num_boosted_rounds(),
        "best": int(booster.attr("best_iteration") or -1),
        "margin": np.asarray(booster.predict(test, output_margin=True), dtype=float).ravel().tolist(),
        "prediction": np.asarray(booster.predict(test), dtype=float).ravel().tolist(),
        "leaf": np.asarray(booster.predict(test, pred_leaf=True)).astype(int).reshape(shown, -1).tolist(),
        "first": np.asarray(booster.predict(test, output_margin=True, iteration_range=(0, 1)), dtype=float).ravel().tolist(),
    }
with open(os.path.join(folder, "expected.json"), "w") as f:
    json.dump(expected, f, separators=(",", ":"))
print(xgb.__version__, len(cases), "cases")
