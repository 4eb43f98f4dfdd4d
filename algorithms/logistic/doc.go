// Package logistic trains logistic regressions, binary and multinomial.
//
//	made := logistic.Train(rows, logistic.Params{LabelCol: "bought", L2: 0.01})
//	engine.Collect(made, "model")
//	predicted := logistic.Predict(rows, made, logistic.PredictOptions{})
//	...
//	m, err := logistic.ModelOf(result, "model")
//	class := m.Predict(x)                          // its number; m.Classes.Values[class] as text
//	ok := m.PredictProbability(x, p)               // no engine, concurrent, no allocation
//
// # What is minimised
//
// With row weights u and probabilities p of each row's own class,
//
//	−Σ u·log p / Σ u + L1·Σ |s·w| + ½·L2·Σ (s·w)²
//
// where s is the standard deviation of the feature, or 1 with NoStandardize, so that by
// default a penalty does not depend on the units of features. Intercepts are not penalised,
// and coefficients are those of the features as they are in any case. With W the total
// weight, scikit-learn's LogisticRegression(C) has L2 = 1/(C·W) and NoStandardize; for more
// than two classes too.
//
// Two classes have one set of coefficients: p of the second class is 1/(1+exp(−m)) with m =
// w·x + c (+ offset). More have one set each, and p in proportion to exp(m): without a
// penalty these are one set more than needed, of which methods that start at zeros find the
// one that adds up to zero.
//
// # Classes
//
// Labels may be of any type. Their distinct values in ascending order are the classes,
// which predictions give back in the type of the column.
//
// # No optimum
//
// Where a plane separates the classes and there is no penalty, coefficients grow without
// end. Training then stops with the reason "diverging", the run counts a warning, and the
// model is one of many that are right on all rows. The same holds of a plane that some rows of
// both classes lie in; of that LBFGS, where it is asked for or is done with before Newton's
// method takes over, may see no more than a small gradient. Any penalty makes the optimum
// unique.
//
// # Standard errors
//
// With Inference, the table has standard errors from the Fisher information at the optimum,
// z statistics, and p values by the normal distribution, for two classes without a penalty.
package logistic
