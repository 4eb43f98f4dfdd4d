"""Makes a model of a data frame whose categories are text and integers; wants pandas and
lightgbm 4.7.

    python frames.py
"""
import json, os
import lightgbm as lgb, numpy as np, pandas as pd

here = os.path.dirname(os.path.abspath(__file__))
draw = np.random.RandomState(5)
n = 200
towns = np.array(["Jena", "Ulm, Neu-", "Köln", "Sankt \"B\""])
rooms = np.array([4, 1, 3])
frame = pd.DataFrame({
    "town": pd.Categorical(towns[draw.randint(0, 4, n)], categories=list(towns)),
    "area": np.round(draw.randn(n), 2),
    "rooms": pd.Categorical(rooms[draw.randint(0, 3, n)], categories=list(rooms)),
})
frame.loc[draw.rand(n) < 0.1, "town"] = np.nan
y = frame["town"].cat.codes * 1.5 % 4 + frame["area"] + frame["rooms"].cat.codes % 2
settings = {"num_leaves": 6, "min_data_in_leaf": 5, "min_data_per_group": 5, "cat_smooth": 1, "verbose": -1, "num_threads": 1, "seed": 1}
booster = lgb.train(settings, lgb.Dataset(frame, label=y), 4)
booster.save_model(os.path.join(here, "frame.txt"))
shown = frame[:25]
json.dump({
    "town": [None if v != v else v for v in shown["town"]],
    "area": shown["area"].tolist(),
    "rooms": [str(v) for v in shown["rooms"]],
    "prediction": booster.predict(shown).tolist(),
}, open(os.path.join(here, "frame.expected.json"), "w"))
