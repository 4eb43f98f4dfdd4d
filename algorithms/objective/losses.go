package objective

// Squared is half the squared difference, ½(m−y)².
type Squared struct{}

// Logistic is the logistic loss of classes 0 and 1, softplus(m) − y·m.
type Logistic struct{}

// Softmax is the cross entropy of K classes, log Σ exp(m_k) − m_y; K 0 means as many as
// the labels have. Each class has coefficients of its own, so that adding the same vector
// to those of all classes changes nothing: without a penalty the Hessian is singular in
// that direction.
type Softmax struct{ K int }

// Hinge is max(0, 1−s·m), with s = −1 for class 0 and +1 for class 1. See Smooth.
type Hinge struct{}

// SquaredHinge is max(0, 1−s·m)², with s = ±1 as for Hinge.
type SquaredHinge struct{}

// EpsilonInsensitive is max(0, |m−y|−Epsilon). See Smooth.
type EpsilonInsensitive struct{ Epsilon float64 }

// SquaredEpsilonInsensitive is max(0, |m−y|−Epsilon)².
type SquaredEpsilonInsensitive struct{ Epsilon float64 }

// Huber is ½r² for |r| ≤ Delta and Delta·|r| − ½Delta² beyond, with r = m−y; Delta 0
// means 1.35.
type Huber struct{ Delta float64 }

// Quantile is the pinball loss max(Q·(y−m), (Q−1)·(y−m)); Q 0 means 0.5. See Smooth.
type Quantile struct{ Q float64 }

// Poisson is half the deviance of counts with a log link: exp(m) − y·m + what depends on
// y alone.
type Poisson struct{}

// Gamma is half the deviance of positive values with a log link.
type Gamma struct{}

// Tweedie is half the deviance with variance mean^Power, 1 < Power < 2, and a log link;
// Power 0 means 1.5.
type Tweedie struct{ Power float64 }

// Perceptron is max(0, −s·m), with s = ±1 as for Hinge.
type Perceptron struct{}

// AFT is the negative log-likelihood of accelerated failure time with Weibull errors, of
// survival times y > 0 seen in full or censored: with one constant, the logarithm of the
// scale.
type AFT struct{}
