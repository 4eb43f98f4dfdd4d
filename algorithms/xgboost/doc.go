// Package xgboost reads and writes tree models in the formats of XGBoost, JSON and UBJSON.
package xgboost
