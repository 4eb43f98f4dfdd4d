package gbdt

import (
	"fmt"
	"slices"
	"strings"
)

// Objective is what training makes small.
type Objective int

const (
	// Squared is half the squared error: it predicts means.
	Squared Objective = iota
	// Absolute is the absolute error: it predicts medians.
	Absolute
	// Huber is squared for errors up to HuberDelta and absolute beyond.
	Huber
	// Quantile is the pinball loss: it predicts Params.Quantile.
	Quantile
	// Logistic is the log-loss of two classes.
	Logistic
	// Softmax is the log-loss of two or more classes, with a tree for each in every round.
	Softmax
	// Poisson is the deviance of counts, whose logarithm is boosted.
	Poisson
	// Gamma is the deviance of positive numbers whose deviation grows with their mean.
	Gamma
	// Tweedie is the deviance of numbers of 0 or more, of variance mean^TweediePower.
	Tweedie
	// AFT is the log-likelihood of an accelerated failure time model: LabelCol is a time, or
	// the lower end of an interval of which LabelUpperCol is the upper end.
	AFT
	// LambdaMART ranks the rows of queries: LabelCol is their relevance, GroupCol the query.
	LambdaMART
	// Custom is what Params.Custom says.
	Custom
)

var objectiveNames = []string{
	"squared", "absolute", "huber", "quantile", "logistic", "softmax", "poisson", "gamma", "tweedie", "aft", "lambdamart", "custom",
}

// String returns the objective's name in lower case, such as "squared".
func (o Objective) String() string { return nameOf(objectiveNames, int(o), "Objective") }

// MarshalText implements encoding.TextMarshaler.
func (o Objective) MarshalText() ([]byte, error) { return textOf(objectiveNames, int(o), "Objective") }

// UnmarshalText implements encoding.TextUnmarshaler: it reads what String returns.
func (o *Objective) UnmarshalText(text []byte) error {
	i, err := indexOf(objectiveNames, text, "objective")
	if err == nil {
		*o = Objective(i)
	}
	return err
}

// classes tells whether labels are classes.
func (o Objective) classes() bool { return o == Logistic || o == Softmax }

// GrowPolicy is the order in which the nodes of a tree are split.
type GrowPolicy int

const (
	// DepthWise splits all nodes of a level, one exchange of histograms a level.
	DepthWise GrowPolicy = iota
	// LossGuide splits the leaf that wins most, until there are MaxLeaves.
	LossGuide
)

var policyNames = []string{"depthwise", "lossguide"}

// String returns "depthwise" or "lossguide".
func (g GrowPolicy) String() string { return nameOf(policyNames, int(g), "GrowPolicy") }

// MarshalText implements encoding.TextMarshaler.
func (g GrowPolicy) MarshalText() ([]byte, error) { return textOf(policyNames, int(g), "GrowPolicy") }

// UnmarshalText implements encoding.TextUnmarshaler: it reads what String returns.
func (g *GrowPolicy) UnmarshalText(text []byte) error {
	i, err := indexOf(policyNames, text, "policy")
	if err == nil {
		*g = GrowPolicy(i)
	}
	return err
}

// Distribution is that of the error of the logarithm of a time, for AFT.
type Distribution int

const (
	// NormalTime takes the error as normal.
	NormalTime Distribution = iota
	// LogisticTime takes it as logistic.
	LogisticTime
	// ExtremeTime takes it as the smallest of many (Gumbel's), so that times are Weibull's.
	ExtremeTime
)

var distributionNames = []string{"normal", "logistic", "extreme"}

// String returns "normal", "logistic" or "extreme".
func (d Distribution) String() string { return nameOf(distributionNames, int(d), "Distribution") }

// MarshalText implements encoding.TextMarshaler.
func (d Distribution) MarshalText() ([]byte, error) {
	return textOf(distributionNames, int(d), "Distribution")
}

// UnmarshalText implements encoding.TextUnmarshaler: it reads what String returns.
func (d *Distribution) UnmarshalText(text []byte) error {
	i, err := indexOf(distributionNames, text, "distribution")
	if err == nil {
		*d = Distribution(i)
	}
	return err
}

// Link is how the value that is predicted follows from margins, which trees add to.
type Link int

const (
	// Identity predicts the margin.
	Identity Link = iota
	// Exponential predicts e to the margin.
	Exponential
	// Sigmoid takes the margin as the log odds of the second of two classes, or, of a custom
	// objective, predicts the probability.
	Sigmoid
	// Shares takes the margins of all classes as logarithms of their odds.
	Shares
)

var linkNames = []string{"identity", "exponential", "sigmoid", "shares"}

// String returns "identity", "exponential", "sigmoid" or "shares".
func (l Link) String() string { return nameOf(linkNames, int(l), "Link") }

// MarshalText implements encoding.TextMarshaler.
func (l Link) MarshalText() ([]byte, error) { return textOf(linkNames, int(l), "Link") }

// UnmarshalText implements encoding.TextUnmarshaler: it reads what String returns.
func (l *Link) UnmarshalText(text []byte) error {
	i, err := indexOf(linkNames, text, "link")
	if err == nil {
		*l = Link(i)
	}
	return err
}

// nameOf returns the name of a constant, "Type(7)" where there is none.
func nameOf(names []string, i int, kind string) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("%s(%d)", kind, i)
	}
	return names[i]
}

func textOf(names []string, i int, kind string) ([]byte, error) {
	if i < 0 || i >= len(names) {
		return nil, fmt.Errorf("%s(%d) is none of the package's constants", kind, i)
	}
	return []byte(names[i]), nil
}

func indexOf(names []string, text []byte, kind string) (int, error) {
	i := slices.Index(names, string(text))
	if i < 0 {
		return 0, fmt.Errorf("unknown %s %q: want one of %s", kind, text, strings.Join(names, ", "))
	}
	return i, nil
}
