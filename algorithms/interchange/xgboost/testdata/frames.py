"""Makes a model of a data frame whose categories are text and integers; wants pandas and
xgboost 3.2.

    python frames.py
"""
import json, os
import numpy as np, pandas as pd, xgboost as xgb

here = os.path.dirname(os.path.abspath(__file__))
draw = np.random.RandomState(3)
n = 120
colours = np.array(["red", "green", "blue", "no colour"])
sizes = np.array([40, 10, 30])
frame = pd.DataFrame({
    "colour": pd.Categorical(colours[draw.randint(0, 4, n)], categories=list(colours)),
    "weight": np.round(draw.randn(n), 2),
    "size": pd.Categorical(sizes[draw.randint(0, 3, n)], categories=list(sizes)),
})
frame.loc[draw.rand(n) < 0.1, "colour"] = np.nan
y = frame["colour"].cat.codes * 1.5 % 4 + frame["weight"] + frame["size"].cat.codes % 2
booster = xgb.train({"max_depth": 3, "max_cat_to_onehot": 1}, xgb.DMatrix(frame, label=y, enable_categorical=True), 3)
booster.save_model(os.path.join(here, "frame.json"))
shown = frame[:20]
json.dump({
    "colour": [None if v != v else v for v in shown["colour"]],
    "weight": shown["weight"].tolist(),
    "size": [str(v) for v in shown["size"]],
    "prediction": booster.predict(xgb.DMatrix(shown, enable_categorical=True)).astype(float).tolist(),
}, open(os.path.join(here, "frame.expected.json"), "w"))
