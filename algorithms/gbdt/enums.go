package gbdt

import "github.com/superstep-ml/superstep/algorithms/internal/enum"

// Objective is the loss that training minimises.
type Objective int

const (
	// Squared is half the squared error: it predicts means.
	Squared Objective = iota
	// Absolute is the absolute error: it predicts medians.
	Absolute
	// Huber is squared for errors up to HuberDelta and linear beyond.
	Huber
	// Quantile is the pinball loss: it predicts the quantile Params.QuantileAt.
	Quantile
	// Logistic is the log-loss of two classes.
	Logistic
	// Softmax is the log-loss of two or more classes, with one tree for each class in every
	// round.
	Softmax
	// Poisson is the deviance of counts; the margin is the logarithm of the mean.
	Poisson
	// Gamma is the deviance of positive numbers whose standard deviation is in proportion to
	// the mean.
	Gamma
	// Tweedie is the deviance of numbers of 0 or more whose variance is in proportion to
	// mean^TweediePower.
	Tweedie
	// AFT is the negative log-likelihood of an accelerated failure time model. LabelCol has a
	// time, or the lower end of an interval whose upper end is in LabelUpperCol.
	AFT
	// LambdaMART ranks the rows of each query. LabelCol has the relevance of a row, and
	// GroupCol its query.
	LambdaMART
	// Custom is the objective in Params.CustomObjective.
	Custom
)

var objectives = enum.Names[Objective]{Type: "Objective", What: "objective", Names: []string{
	"squared", "absolute", "huber", "quantile", "logistic", "softmax", "poisson", "gamma", "tweedie", "aft", "lambdamart", "custom",
}}

// String returns the objective's name in lower case, such as "squared".
func (o Objective) String() string { return objectives.String(o) }

// MarshalText implements encoding.TextMarshaler.
func (o Objective) MarshalText() ([]byte, error) { return objectives.Text(o) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (o *Objective) UnmarshalText(text []byte) error { return objectives.Parse(o, text) }

// classes reports whether labels are classes.
func (o Objective) classes() bool { return o == Logistic || o == Softmax }

// GrowPolicy is the order in which the nodes of a tree are split.
type GrowPolicy int

const (
	// DepthWise splits all nodes of a level at once, with one exchange of histograms.
	DepthWise GrowPolicy = iota
	// LossGuide splits the leaf with the largest gain, until the tree has MaxLeaves leaves.
	LossGuide
)

var policies = enum.Names[GrowPolicy]{Type: "GrowPolicy", What: "policy", Names: []string{"depthwise", "lossguide"}}

// String returns "depthwise" or "lossguide".
func (g GrowPolicy) String() string { return policies.String(g) }

// MarshalText implements encoding.TextMarshaler.
func (g GrowPolicy) MarshalText() ([]byte, error) { return policies.Text(g) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (g *GrowPolicy) UnmarshalText(text []byte) error { return policies.Parse(g, text) }

// Distribution is the distribution of the error of the logarithm of a time, for AFT.
type Distribution int

const (
	// NormalTime is a normal distribution of the error.
	NormalTime Distribution = iota
	// LogisticTime is a logistic distribution of the error.
	LogisticTime
	// ExtremeTime is the distribution of the smallest of many values (Gumbel), with which times
	// have a Weibull distribution.
	ExtremeTime
)

var distributions = enum.Names[Distribution]{Type: "Distribution", What: "distribution", Names: []string{"normal", "logistic", "extreme"}}

// String returns "normal", "logistic" or "extreme".
func (d Distribution) String() string { return distributions.String(d) }

// MarshalText implements encoding.TextMarshaler.
func (d Distribution) MarshalText() ([]byte, error) { return distributions.Text(d) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (d *Distribution) UnmarshalText(text []byte) error { return distributions.Parse(d, text) }

// Link is the function from margins to predictions. Margins are sums of trees.
type Link int

const (
	// Identity predicts the margin.
	Identity Link = iota
	// Exponential predicts e to the margin.
	Exponential
	// Sigmoid takes the margin as the log odds of the second of two classes. With a custom
	// objective the prediction is the probability of the second class.
	Sigmoid
	// Shares takes the margins of the classes as logarithms of their relative odds (softmax).
	Shares
)

var linkNames = enum.Names[Link]{Type: "Link", What: "link", Names: []string{"identity", "exponential", "sigmoid", "shares"}}

// String returns "identity", "exponential", "sigmoid" or "shares".
func (l Link) String() string { return linkNames.String(l) }

// MarshalText implements encoding.TextMarshaler.
func (l Link) MarshalText() ([]byte, error) { return linkNames.Text(l) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (l *Link) UnmarshalText(text []byte) error { return linkNames.Parse(l, text) }
