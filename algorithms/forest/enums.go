package forest

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
)

// Task is what a forest predicts: numbers or classes.
type Task = signature.Task

const (
	// Regression predicts a number: the mean, over the trees, of the value of the leaf that the
	// row reaches.
	Regression = signature.Regression
	// Classification predicts the class with the largest mean share in the leaves that the row
	// reaches. Of equal means it is the first class.
	Classification = signature.Classification
)

// Method says how the trees of a forest differ.
type Method int

const (
	// RandomForest grows each tree on a bootstrap of the rows and takes the best split among
	// some features at each node (Breiman, "Random Forests", Machine Learning 45, 2001).
	RandomForest Method = iota
	// ExtraTrees grows each tree on all rows. At each node it draws some features, makes one
	// random split by each of them, and takes the best (Geurts, Ernst and Wehenkel, "Extremely
	// Randomized Trees", Machine Learning 63, 2006).
	ExtraTrees
	// SingleTree trains one tree on all rows, and tries all features at each node.
	SingleTree
)

var methods = enum.Names[Method]{Type: "Method", What: "method", Names: []string{"random-forest", "extra-trees", "single-tree"}}

// String returns "random-forest", "extra-trees" or "single-tree".
func (m Method) String() string { return methods.String(m) }

// MarshalText implements encoding.TextMarshaler.
func (m Method) MarshalText() ([]byte, error) { return methods.Text(m) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (m *Method) UnmarshalText(text []byte) error { return methods.Parse(m, text) }

// Criterion is the impurity that splits reduce.
type Criterion int

const (
	// AutoCriterion is Gini for Classification and Variance for Regression.
	AutoCriterion Criterion = iota
	// Gini is 1 − Σ share² over the classes.
	Gini
	// Entropy is −Σ share·log share over the classes, in nats.
	Entropy
	// Variance is the mean squared difference from the mean.
	Variance
	// Poisson is the mean of label·log(label/mean), half the deviance, for labels of 0 or more.
	// A split must leave at least one label above 0 on each side.
	Poisson
)

var criteria = enum.Names[Criterion]{Type: "Criterion", What: "criterion", Names: []string{"auto", "gini", "entropy", "variance", "poisson"}}

// String returns "auto", "gini", "entropy", "variance" or "poisson".
func (c Criterion) String() string { return criteria.String(c) }

// MarshalText implements encoding.TextMarshaler.
func (c Criterion) MarshalText() ([]byte, error) { return criteria.Text(c) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (c *Criterion) UnmarshalText(text []byte) error { return criteria.Parse(c, text) }

// Sampling says how the rows of a tree are drawn.
type Sampling int

const (
	// AutoSampling is Bootstrap for RandomForest and Whole for the other methods.
	AutoSampling Sampling = iota
	// Bootstrap draws each row a number of times that has the Poisson distribution with mean
	// SampleShare. For many rows this is nearly the same as drawing the share SampleShare of
	// them with replacement. The only fact that subtasks have to exchange is whether a tree
	// drew any row.
	Bootstrap
	// Subset draws each row at most once, with probability SampleShare.
	Subset
	// Whole takes all rows.
	Whole
)

var samplings = enum.Names[Sampling]{Type: "Sampling", What: "sampling", Names: []string{"auto", "bootstrap", "subset", "whole"}}

// String returns "auto", "bootstrap", "subset" or "whole".
func (s Sampling) String() string { return samplings.String(s) }

// MarshalText implements encoding.TextMarshaler.
func (s Sampling) MarshalText() ([]byte, error) { return samplings.Text(s) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (s *Sampling) UnmarshalText(text []byte) error { return samplings.Parse(s, text) }

// tried returns how many of d features are tried at a node.
func (p Params) tried(d int) (int, error) {
	text := p.MaxFeatures
	if text == "" {
		switch {
		case p.Method == SingleTree:
			text = "all"
		case p.Task == Classification:
			text = "sqrt"
		default:
			text = "third"
		}
	}
	n := d
	switch text {
	case "all":
	case "sqrt":
		for n = 1; (n+1)*(n+1) <= d; n++ {
		}
	case "log2":
		n = bits.Len(uint(d)) - 1
	case "third":
		n = d / 3
	default:
		if k, err := strconv.Atoi(text); err == nil && k >= 1 {
			n = k
			break
		}
		share, err := strconv.ParseFloat(text, 64)
		if err != nil || !strings.Contains(text, ".") || !(share > 0 && share <= 1) {
			return 0, fmt.Errorf("MaxFeatures is %q: want sqrt, log2, third, all, a number of 1 or more such as 7, or a share up to 1 such as 0.4", p.MaxFeatures)
		}
		n = int(share * float64(d))
	}
	return max(1, min(n, d)), nil
}
