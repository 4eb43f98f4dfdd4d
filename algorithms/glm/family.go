package glm

import "fmt"

// Family is the distribution of the label.
type Family int

const (
	// Gaussian values have a variance that does not depend on the mean.
	Gaussian Family = iota
	// Binomial values are 0 and 1, or proportions from 0 to 1 with the number of trials as
	// weight.
	Binomial
	// Poisson values are counts, 0 or more, whose variance is the mean.
	Poisson
	// Gamma values are above 0, with a variance in proportion to the square of the mean.
	Gamma
	// Tweedie values have a variance in proportion to mean^Power: with a Power between 1 and 2
	// they are 0 or more, and sums of a Poisson number of Gamma values.
	Tweedie
)

var familyNames = [...]string{"gaussian", "binomial", "poisson", "gamma", "tweedie"}

// Link is what of the mean is linear in the features.
type Link int

const (
	// Auto takes Identity for Gaussian, Logit for Binomial, and Log for the others.
	Auto Link = iota
	// Identity is the mean itself.
	Identity
	// Log is its logarithm.
	Log
	// Logit is log(mean/(1−mean)).
	Logit
	// Inverse is 1/mean.
	Inverse
)

var linkNames = [...]string{"auto", "identity", "log", "logit", "inverse"}

// links are those that make sense of each family, the first by default.
var links = [...][]Link{
	Gaussian: {Identity, Log},
	Binomial: {Logit, Log, Identity},
	Poisson:  {Log, Identity},
	Gamma:    {Log, Inverse, Identity},
	Tweedie:  {Log, Identity},
}

// String returns the name in lower case.
func (f Family) String() string { return name("Family", int(f), familyNames[:]) }

// MarshalText implements encoding.TextMarshaler.
func (f Family) MarshalText() ([]byte, error) { return marshal(int(f), f.String(), familyNames[:]) }

// UnmarshalText implements encoding.TextUnmarshaler: it reads what String returns.
func (f *Family) UnmarshalText(text []byte) error {
	i, err := unmarshal("family", text, familyNames[:])
	if err == nil {
		*f = Family(i)
	}
	return err
}

// String returns the name in lower case.
func (l Link) String() string { return name("Link", int(l), linkNames[:]) }

// MarshalText implements encoding.TextMarshaler.
func (l Link) MarshalText() ([]byte, error) { return marshal(int(l), l.String(), linkNames[:]) }

// UnmarshalText implements encoding.TextUnmarshaler: it reads what String returns.
func (l *Link) UnmarshalText(text []byte) error {
	i, err := unmarshal("link", text, linkNames[:])
	if err == nil {
		*l = Link(i)
	}
	return err
}

func name(of string, i int, names []string) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("%s(%d)", of, i)
	}
	return names[i]
}

func marshal(i int, text string, names []string) ([]byte, error) {
	if i < 0 || i >= len(names) {
		return nil, fmt.Errorf("%s is none of the package's constants", text)
	}
	return []byte(text), nil
}

func unmarshal(what string, text []byte, names []string) (int, error) {
	for i, name := range names {
		if name == string(text) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q: want one of %v", what, text, names)
}
