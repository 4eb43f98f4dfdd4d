// Package svm trains linear support vector machines: LinearSVC for classes, two or more,
// and LinearSVR for numbers.
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
// where s is the standard deviation of the feature, or 1 with NoStandardize, so that by
// default a penalty does not depend on the units of features. Intercepts are not penalised,
// and coefficients are those of the features as they are in any case. Losses are
//
//	LinearSVC            max(0, 1−y·m), with y = +1 for the class and −1 for the others
//	LinearSVC, Squared   the square of that
//	LinearSVR            max(0, |m−y|−Epsilon)
//	LinearSVR, Squared   the square of that
//
// With W the total weight, scikit-learn's LinearSVC and LinearSVR of C have L2 = 1/(C·W)
// and NoStandardize, and so have those of liblinear's solvers; LinearSVC's default there is
// the squared hinge. liblinear penalises the intercept as one more coefficient, which an
// intercept_scaling that is large makes up for; class weights are there those of the class
// against the rest, here those of rows, which is the same for two classes.
//
// # Several classes
//
// Two classes have one set of coefficients: the second is predicted where the margin is
// above 0. Of more, each has one, that tells it from all others, and the class with the
// largest margin is predicted. All are trained together: the sum of their objectives, which
// have no parameter in common, is minimised.
//
// # How
//
// The losses that are not squared have kinks. They are minimised by smooth approximations of
// them, in rounds, until the objective is within GapTol of a lower bound of its minimum,
// the value of a feasible point of the dual problem (package objective has the method and
// its references). The gap that was reached is among the summary's measures. A bound needs
// an L2 penalty, without which, besides, a support vector machine would have no margin to
// maximise. Squared losses are smooth and go straight to an optimiser: Newton's method up to
// 32 parameters in all, L-BFGS beyond that, OWL-QN with an L1 penalty.
package svm
