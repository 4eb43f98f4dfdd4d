// Package logistic trains logistic regressions, binary and multinomial.
//
//	made := logistic.Train(rows, logistic.Params{LabelCol: "bought", L2: 0.01})
//	engine.Collect(made, "model")
//	predicted := logistic.Predict(rows, made, logistic.PredictOptions{})
//	...
//	m, err := logistic.ModelOf(result, "model")
//	class := m.Predict(x)                          // its index; m.Classes.Values[class] is its text
//	ok := m.PredictProbability(x, p)               // needs no engine; safe for concurrent use
//
// # Objective
//
// With row weights u and the probabilities p that the model gives to the rows' own classes,
// training minimises
//
//	−Σ u·log p / Σ u + L1·Σ |s·w| + ½·L2·Σ (s·w)²
//
// where s is the standard deviation of the feature, or 1 with NoStandardize. So by default the
// penalty does not depend on the units of features. Intercepts are not penalised. Coefficients
// are always for unscaled features. With W the total weight, scikit-learn's
// LogisticRegression(C) corresponds to L2 = 1/(C·W) with NoStandardize, also for more than two
// classes.
//
// Two classes share one set of coefficients: the probability of the second class is
// 1/(1+exp(−m)) with m = w·x + c (+ offset). With more classes, each class has its own set, and
// the probability of a class is proportional to exp(m). The probabilities would not change if
// the same vector were added to all sets. Without a penalty the sets are therefore not unique;
// training that starts at zeros then finds sets whose sum is zero.
//
// # Classes
//
// Labels may be of any type. Their distinct values in ascending order are the classes.
// Predictions have the type of the labels' column.
//
// # No optimum
//
// If a hyperplane separates the classes and there is no penalty, coefficients grow without
// bound. Training then stops with the reason "diverging", the run counts a warning, and the
// model is one of many models that are right on all rows. The same holds if the hyperplane
// separates all rows except rows that lie in it. In that case LBFGS may report convergence
// instead, because the gradient is small. This can happen if Method is LBFGS, or if training
// ends before it changes to Newton's method. Any penalty makes the optimum unique.
//
// # Standard errors
//
// Inference adds a table of standard errors, z statistics and p values. The standard errors are
// computed from the Fisher information at the optimum, and the p values by the normal
// distribution. It is available for two classes without a penalty.
package logistic
