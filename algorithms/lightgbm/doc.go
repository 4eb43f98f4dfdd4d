// Package lightgbm reads and writes tree models in the text format of LightGBM.
package lightgbm
