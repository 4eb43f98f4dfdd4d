package tune

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/collective/simulate"
)

// Tuner chooses. It is immutable once in use, and may be used by several goroutines.
type Tuner struct {
	// Network is what candidates are priced on; nil stands for Default's.
	Network *simulate.Network

	// Rules are looked at first; the first that fits decides.
	Rules []Rule

	// Corrections are what measurements say beyond the model.
	Corrections []Correction

	// AnyTree lets programs compete that do not fold in the canonical tree: the result
	// may then change with size, network and number of ranks.
	AnyTree bool
}

// Default tunes for ranks on one host that talk through its kernel.
func Default() *Tuner {
	t := &Tuner{Network: loopback(), Corrections: []Correction{
		// One message that goes to and fro keeps two ranks on one core, where waking the
		// other is cheap. Messages that cross wake them on two, which the model, with cores
		// that are all alike, does not know. Measured on two: 15 µs there and back, 21 to 24
		// for what crosses.
		{Collective: program.Barrier, Algorithm: "dissemination", Ranks: 2, Factor: 1.5},
	}}
	for _, whole := range []string{"recursive-doubling", "allgather-reduce"} {
		// Whole buffers that cross, too, but the longest that travel in one piece gain by it:
		// 51 µs where the halves of 256 KiB take 67; of 384 KiB 190 and 80.
		for _, c := range []Correction{{Bytes: 64 << 10, Factor: 1.5}, {Bytes: 192 << 10, Factor: 0.9}, {Bytes: 384 << 10, Factor: 1.5}} {
			c.Collective, c.Algorithm, c.Ranks = program.AllReduce, whole, 2
			t.Corrections = append(t.Corrections, c)
		}
	}
	return t
}

func loopback() *simulate.Network {
	n, err := simulate.Preset("loopback")
	if err != nil {
		panic(err) // the preset is part of the package
	}
	return n
}

// Query is what a choice depends on.
type Query struct {
	Collective program.Collective
	Params     algorithm.Params
	Bytes      int // of the whole data
	Elem       int // bytes of an element
	Uneven     bool
	InOrder    bool // the operator does not commute
}

// String is, for example, "allreduce of 1048576 bytes among 8 ranks".
func (q Query) String() string {
	s := fmt.Sprintf("%s of %d bytes among %d ranks", q.Collective, q.Bytes, q.Params.P)
	if q.Uneven {
		s += ", blocks of different lengths"
	}
	if q.InOrder {
		s += ", operands in rank order"
	}
	if q.Params.Forest != nil {
		s += ", forests"
	}
	return s
}

// Choice is a way to carry out a collective.
type Choice struct {
	Algorithm string
	Dims      []int
	Segment   int // bytes; 0 leaves it to the executor
	Channels  int // connections a lane takes turns on; 0 stands for what Channels says
}

// String is, for example, "torus:4x8, segments of 65536 bytes".
func (c Choice) String() string {
	s := c.Algorithm
	for i, d := range c.Dims {
		sep := "x"
		if i == 0 {
			sep = ":"
		}
		s += fmt.Sprint(sep, d)
	}
	if c.Segment > 0 {
		s += fmt.Sprintf(", segments of %d bytes", c.Segment)
	}
	if c.Channels > 1 {
		s += fmt.Sprintf(", %d channels", c.Channels)
	}
	return s
}

// Candidate is a choice with its price, or with why it is none.
type Candidate struct {
	Choice
	Seconds float64
	Refused string // why it does not compete; "" if it does
}

// Decision is a choice and how it came about.
type Decision struct {
	Choice
	Query      Query
	Rule       *Rule       // that decided, if one did
	Candidates []Candidate // those that compete first, cheapest first
	Network    string
}

// Explain is a table for people: what competed, at which price, and what did not,
// and why.
func (d *Decision) Explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", d.Query, d.Choice)
	if d.Rule != nil {
		fmt.Fprintf(&b, " (by rule: %s)\n", d.Rule)
		return b.String()
	}
	why := "least price"
	if d.Candidates[0].Algorithm != d.Algorithm {
		why = "fewest steps among the shortest predicted times"
	}
	fmt.Fprintf(&b, " (%s on network %q)\n", why, d.Network)
	w := tabwriter.NewWriter(&b, 2, 0, 2, ' ', 0)
	for _, c := range d.Candidates {
		price := c.Refused
		if price == "" {
			price = fmt.Sprintf("%.1f µs", c.Seconds*1e6)
		}
		fmt.Fprintf(w, "  %s\t%s\n", c.Choice, price)
	}
	w.Flush() // to a strings.Builder, which does not fail
	return b.String()
}

// Choose decides. The same query gives the same decision, everywhere.
func (t *Tuner) Choose(ctx context.Context, q Query) (*Decision, error) {
	network := t.Network
	if network == nil {
		network = loopback()
	}
	d := &Decision{Query: q, Network: network.Name}
	for i := range t.Rules {
		r := &t.Rules[i]
		if !r.fits(q) {
			continue
		}
		if s, c := r.Choice.Segment, r.Choice.Channels; s < 0 || c < 0 || c > MaxChannels {
			return nil, fmt.Errorf("tuning rule %s: segments of %d bytes on %d channels: neither is below zero, and channels are at most %d", r, s, c, MaxChannels)
		}
		a, err := algorithm.Find(q.Collective, r.Choice.Algorithm)
		if err != nil {
			return nil, fmt.Errorf("tuning rule %s: %w", r, err)
		}
		pr := q.Params
		pr.Dims = r.Choice.Dims
		// A rule was written by someone who wants it: it may leave the canonical tree.
		if why := refusal(a, pr, q, true); why != "" {
			return nil, fmt.Errorf("tuning rule %s: for %s: %s", r, q, why)
		}
		d.Choice, d.Rule = r.Choice, r
		return d, nil
	}
	for _, a := range algorithm.For(q.Collective) {
		c := Candidate{Choice: Choice{Algorithm: a.Name}}
		c.Refused = refusal(a, q.Params, q, t.AnyTree)
		if c.Refused == "" {
			if err := t.price(ctx, &c, a, q, network); err != nil {
				return nil, fmt.Errorf("pricing %s: %w", a.Name, err)
			}
		}
		d.Candidates = append(d.Candidates, c)
	}
	slices.SortStableFunc(d.Candidates, func(a, b Candidate) int {
		if x := cmp.Compare(len(a.Refused), len(b.Refused)); x != 0 && min(len(a.Refused), len(b.Refused)) == 0 {
			return x
		}
		return cmp.Compare(a.Seconds, b.Seconds)
	})
	if len(d.Candidates) == 0 || d.Candidates[0].Refused != "" {
		return nil, fmt.Errorf("no algorithm carries out %s", q)
	}
	d.pick()
	return d, nil
}

// alike is by what factor prices differ that are called the same: real runs of one
// program differ by more.
const alike = 1.03

// pick chooses among the candidates that cost about the least the one with the fewest
// steps: each is a chance to wait for a rank that is late, which none is in the model.
// Of several it is the one that serves more, which is listed first.
func (d *Decision) pick() {
	fewest, first := 0, 0
	all := algorithm.For(d.Query.Collective)
	for i, c := range d.Candidates {
		if c.Refused != "" || c.Seconds > alike*d.Candidates[0].Seconds {
			break
		}
		at := slices.IndexFunc(all, func(a *algorithm.Algorithm) bool { return a.Name == c.Algorithm })
		pr := d.Query.Params
		pr.Dims = c.Dims
		steps := all[at].Cost(pr).Steps
		if i == 0 || steps < fewest || steps == fewest && at < first {
			d.Choice, fewest, first = c.Choice, steps, at
		}
	}
}

// longerSegment is tried where an algorithm's data is a multiple of it: each segment costs
// messages and wake-ups, though pipelines are slower to fill with long ones. What is much
// longer has left the cache between its sender's steps.
const longerSegment = 1 << 20

// gain is what a longer segment must save: pipelines overlap less evenly than prices
// say, and what is in a cache is not in the model.
const gain = 0.99

// price sets a candidate's price, with the length of segments that is cheapest.
func (t *Tuner) price(ctx context.Context, c *Candidate, a *algorithm.Algorithm, q Query, network *simulate.Network) error {
	correction := t.correction(q, a.Name)
	for i, segment := range [...]int{0, longerSegment} {
		if i > 0 && segment > q.Bytes/4 {
			break
		}
		r, err := simulate.Price(ctx, a, q.Params, q.Bytes, max(q.Elem, 1), network, simulate.Options{Segment: segment, MaxSegments: maxSegments})
		if err != nil {
			return err
		}
		if seconds := r.Time * correction; i == 0 || seconds < c.Seconds*gain {
			c.Seconds, c.Segment = seconds, segment
		}
	}
	c.Channels = Channels(q.Bytes, q.Params.P)
	return nil
}

// MaxChannels bounds the connections that a lane takes turns on: more gain nothing.
const MaxChannels = 16

// Channels is the number of connections that a lane takes turns on unless someone
// says another. A socket is locked while what has come is copied out of it, and what
// comes meanwhile waits: with several, one fills while another is emptied, which on
// loopback takes up to half of the time off messages of 128 KiB to some megabytes, and
// nothing off longer ones. Shorter ones are one segment, which one connection carries.
// Among many ranks there are many connections anyway, and none to spare.
func Channels(bytes, ranks int) int {
	if ranks > mostStriped || bytes/max(ranks, 1) < leastStriped {
		return 1
	}
	return stripes
}

const (
	stripes      = 4
	mostStriped  = 16        // ranks
	leastStriped = 128 << 10 // bytes of a block
)

// maxSegments bounds the work of pricing one candidate. It is far beyond what segments
// of the usual length come to, which pipelines must be priced with.
const maxSegments = 1 << 16

// refusal returns why an algorithm does not compete, or "".
func refusal(a *algorithm.Algorithm, pr algorithm.Params, q Query, anyTree bool) string {
	if err := a.Supports(pr); err != nil {
		return strings.TrimPrefix(err.Error(), fmt.Sprintf("%s %s: ", a.Name, a.Collective))
	}
	switch {
	case a.EvenOnly && q.Uneven:
		return "takes blocks of even lengths only"
	case q.InOrder && q.Collective.Reduces() && (a.RankOrder == nil || !a.RankOrder(pr.P)):
		return "does not keep the order of ranks"
	case q.Collective.Reduces() && !anyTree && (a.Canonical == nil || !a.Canonical(pr.P)):
		return "does not fold in the canonical tree"
	}
	return ""
}
