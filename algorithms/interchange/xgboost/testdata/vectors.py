"""Writes vectors.json: trees with vectors in their leaves, by XGBoost 3.2.0."""
import numpy as np
import xgboost as xgb

x = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 4.0], [4.0, 3.0]])
y = np.array([[1.0, 2.0], [2.0, 3.0], [3.0, 5.0], [4.0, 1.0]])
settings = {"multi_strategy": "multi_output_tree", "tree_method": "hist", "max_depth": 2, "min_child_weight": 0, "objective": "reg:squarederror"}
xgb.train(settings, xgb.DMatrix(x, y), 1).save_model("vectors.json")
