// Package svm trains linear support vector machines: LinearSVC for two or more classes, and
// LinearSVR for numbers.
//
//	made := svm.TrainSVC(rows, svm.LinearSVC{LabelCol: "species", L2: 0.01})
//	engine.Collect(made, "model")
//	predicted := svm.PredictSVC(rows, made, svm.PredictOptions{})
//	...
//	m, err := svm.SVCModelOf(result, "model")
//	class := m.Predict(x)                          // index of the class; m.Classes.Values[class] is its text
//	ok := m.Decision(x, margins)                   // needs no engine, may be called concurrently, allocates nothing
//
// # Objective
//
// With row weights u and margins m = w·x + c,
//
//	Σ u·loss(m) / Σ u + L1·Σ |s·w| + ½·L2·Σ (s·w)²
//
// where w are the coefficients, c is the intercept, and s is the standard deviation of the
// feature, or 1 with NoStandardize. By default the penalty therefore does not depend on the
// units of features. Intercepts are not penalised. Coefficients are always for unscaled
// features. The losses are
//
//	LinearSVC            max(0, 1−y·m), with y = +1 for the class and −1 for the others
//	LinearSVC, Squared   max(0, 1−y·m)²
//	LinearSVR            max(0, |m−y|−Epsilon)
//	LinearSVR, Squared   max(0, |m−y|−Epsilon)²
//
// With W the total weight, LinearSVC(C) and LinearSVR(C) of scikit-learn, and the solvers of
// liblinear, correspond to L2 = 1/(C·W) with NoStandardize. The default loss of scikit-learn's
// LinearSVC is the squared hinge. liblinear penalises the intercept like a coefficient; a large
// intercept_scaling makes that penalty negligible. In liblinear, the weight of a class applies
// to the rows of that class only in the problem that separates the class from the rest. Here a
// class weight applies to the rows of the class in all problems. For two classes, this makes no
// difference.
//
// # Several classes
//
// Two classes have one set of coefficients: the second class is predicted if the margin is
// above 0. With more classes, each class has its own set, which separates the class from all
// others, and the class with the largest margin is predicted. All sets are trained together:
// training minimises the sum of the objectives of the sets. These objectives share no
// parameters.
//
// # Methods
//
// Losses without Squared have kinks. They are minimised by smooth approximations, in rounds,
// until the objective is within GapTol of a lower bound of its minimum. The bound is the value
// of a feasible point of the dual problem (package objective describes the method and cites the
// papers). The final gap is among the summary's measures. The bound needs an L2 penalty;
// without an L2 penalty, a support vector machine would have no margin to maximise. Squared
// losses are smooth and are minimised directly: by Newton's method for up to 32 parameters in
// total, by L-BFGS for more, and by OWL-QN with an L1 penalty.
package svm
