package glm

import (
	"github.com/superstep-ml/superstep/algorithms/internal/enum"
)

// Family is the distribution of the label.
type Family int

const (
	// Gaussian labels have the same variance at every mean.
	Gaussian Family = iota
	// Binomial labels are 0 and 1, or proportions from 0 to 1 whose weights are the numbers of
	// trials.
	Binomial
	// Poisson labels are counts, 0 or more. Their variance is the mean.
	Poisson
	// Gamma labels are above 0. Their variance is proportional to the square of the mean.
	Gamma
	// Tweedie labels have a variance proportional to mean^Power. With a Power between 1 and 2
	// they are 0 or more: each is a sum of a Poisson-distributed number of Gamma values.
	Tweedie
)

var families = enum.Names[Family]{Type: "Family", What: "family", Names: []string{"gaussian", "binomial", "poisson", "gamma", "tweedie"}}

// Link is the function of the mean that is linear in the features.
type Link int

const (
	// Auto selects Identity for Gaussian, Logit for Binomial, and Log for the other families.
	Auto Link = iota
	// Identity is the mean itself.
	Identity
	// Log is the logarithm of the mean.
	Log
	// Logit is log(mean/(1−mean)).
	Logit
	// Inverse is 1/mean.
	Inverse
)

var linkNames = enum.Names[Link]{Type: "Link", What: "link", Names: []string{"auto", "identity", "log", "logit", "inverse"}}

// links has the links that each family allows. The first is the default.
var links = [...][]Link{
	Gaussian: {Identity, Log},
	Binomial: {Logit, Log, Identity},
	Poisson:  {Log, Identity},
	Gamma:    {Log, Inverse, Identity},
	Tweedie:  {Log, Identity},
}

// String returns the name in lower case.
func (f Family) String() string { return families.String(f) }

// MarshalText implements encoding.TextMarshaler.
func (f Family) MarshalText() ([]byte, error) { return families.Text(f) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (f *Family) UnmarshalText(text []byte) error { return families.Parse(f, text) }

// String returns the name in lower case.
func (l Link) String() string { return linkNames.String(l) }

// MarshalText implements encoding.TextMarshaler.
func (l Link) MarshalText() ([]byte, error) { return linkNames.Text(l) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (l *Link) UnmarshalText(text []byte) error { return linkNames.Parse(l, text) }
