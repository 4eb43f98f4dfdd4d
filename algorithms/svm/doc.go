// Package svm trains linear support vector machines: LinearSVC for two or more classes, and
// LinearSVR for numbers.
//
//	made := svm.TrainSVC(rows, svm.LinearSVC{LabelCol: "species", L2: 0.01})
//	engine.Collect(made, "model")
//	predicted := svm.PredictSVC(rows, made, svm.PredictOptions{})
//	...
//	m, err := svm.SVCModelOf(result, "model")
//	class := m.Predict(x)                          // its number; m.Classes.Values[class] as text
//	ok := m.Decision(x, margins)                   // no engine, concurrent, no allocation
//
// # What is minimised
//
// With row weights u and margins m = w·x + c,
//
//	Σ u·loss(m) / Σ u + L1·Σ |s·w| + ½·L2·Σ (s·w)²
//
// where s is the standard deviation of the feature, or 1 with NoStandardize, so that by default
// a penalty does not depend on the units of features. Intercepts are not penalised.
// Coefficients are always for unscaled features. Losses are
//
//	LinearSVC            max(0, 1−y·m), with y = +1 for the class and −1 for the others
//	LinearSVC, Squared   the square of that
//	LinearSVR            max(0, |m−y|−Epsilon)
//	LinearSVR, Squared   the square of that
//
// With W the total weight, LinearSVC(C) and LinearSVR(C) of scikit-learn, and the solvers of
// liblinear, are L2 = 1/(C·W) with NoStandardize. The default loss of LinearSVC there is the
// squared hinge. liblinear penalises the intercept as one more coefficient; a large
// intercept_scaling makes this negligible. Class weights there are weights of a class against
// the rest. Here they are weights of rows, which is the same for two classes.
//
// # Several classes
//
// Two classes have one set of coefficients: the second is predicted where the margin is above
// 0. More classes have one set each, which separates the class from all others, and the class
// with the largest margin is predicted. All sets are trained together: training minimises the
// sum of their objectives, which share no parameters.
//
// # How
//
// Losses without Squared have kinks. They are minimised by smooth approximations, in rounds,
// until the objective is within GapTol of a lower bound of its minimum. The bound is the value
// of a feasible point of the dual problem (package objective has the method and its
// references). The final gap is among the summary's measures. The bound needs an L2 penalty;
// without one a support vector machine would have no margin to maximise either. Squared losses
// are smooth and go straight to an optimiser: Newton's method up to 32 parameters in all,
// L-BFGS beyond that, OWL-QN with an L1 penalty.
package svm
