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

// Tuner chooses algorithms. Several goroutines may use a Tuner. It must not be changed once it
// is in use.
type Tuner struct {
	// Network is the network for which times are predicted. Nil means the network of Default.
	Network *simulate.Network

	// Rules take precedence over prices. The first rule that fits a query decides.
	Rules []Rule

	// Corrections are measured errors of the model, by which predicted times are multiplied.
	Corrections []Correction

	// AnyTree lets algorithms compete that do not fold in the canonical tree. The result of a
	// reduction may then depend on the size, the network and the number of ranks.
	AnyTree bool
}

// Default returns a Tuner for ranks on one host that communicate through its kernel.
func Default() *Tuner {
	t := &Tuner{Network: loopback(), Corrections: []Correction{
		// If two ranks send one message back and forth, the scheduler keeps both ranks on one
		// core, where waking a rank is cheap. If the messages of two ranks cross, the scheduler
		// wakes the ranks on two cores. The model does not take this into account, since it
		// treats all cores alike. On a machine with two cores, a message back and forth took 15
		// µs, and messages that cross took 21 to 24 µs.
		{Collective: program.Barrier, Algorithm: "dissemination", Ranks: 2, Factor: 1.5},
	}}
	for _, whole := range []string{"recursive-doubling", "allgather-reduce"} {
		// The same holds for whole buffers that cross, compared with halves of buffers. There
		// is one exception: the longest buffers that have one segment are faster than halves.
		// Whole buffers of 256 KiB took 51 µs, and halves 67 µs. For 384 KiB, whole buffers
		// took 190 µs, and halves 80 µs.
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

// Query has everything on which a choice depends.
type Query struct {
	Collective program.Collective
	Params     algorithm.Params
	Bytes      int // number of bytes of the whole data
	Elem       int // bytes of an element
	Uneven     bool
	InOrder    bool // the operator does not commute
}

// String returns, for example, "allreduce of 1048576 bytes among 8 ranks".
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
	Segment   int // length of a segment in bytes; 0 means that the executor chooses
	Channels  int // connections that a lane uses in turn; 0 means the result of the function Channels
}

// String returns, for example, "torus:4x8, segments of 65536 bytes".
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

// Candidate is a choice with its price, or with the reason why it does not compete.
type Candidate struct {
	Choice
	Seconds float64
	Refused string // the reason why the candidate does not compete; "" if it competes
}

// Decision is a choice, with the rule or the prices by which it was made.
type Decision struct {
	Choice
	Query      Query
	Rule       *Rule       // the rule that decided, or nil
	Candidates []Candidate // first the candidates that compete, by ascending price, then the others
	Network    string
}

// Explain returns a table for users. It has the choice and its reason, the candidates with
// their prices, and the algorithms that did not compete, with the reasons.
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
	w.Flush() // a strings.Builder does not fail
	return b.String()
}

// Choose returns the decision for a query. The decision is the same on every machine.
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
		// A rule is an explicit request, so it may name an algorithm that does not fold in the
		// canonical tree.
		if reason := refusal(a, pr, q, true); reason != "" {
			return nil, fmt.Errorf("tuning rule %s: for %s: %s", r, q, reason)
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

// samePriceRatio is the ratio up to which two prices count as equal. The times of two runs of
// the same program differ by more than this ratio.
const samePriceRatio = 1.03

// pick chooses among the candidates whose prices count as equal to the least price. It chooses
// the candidate with the fewest steps, because in each step a rank may have to wait for a late
// rank, and the model has no late ranks. If several candidates have the fewest steps, pick
// chooses the first of them in the list of algorithms.
func (d *Decision) pick() {
	fewest, first := 0, 0
	all := algorithm.For(d.Query.Collective)
	for i, c := range d.Candidates {
		if c.Refused != "" || c.Seconds > samePriceRatio*d.Candidates[0].Seconds {
			break
		}
		index := slices.IndexFunc(all, func(a *algorithm.Algorithm) bool { return a.Name == c.Algorithm })
		pr := d.Query.Params
		pr.Dims = c.Dims
		steps := all[index].Cost(pr).Steps
		if i == 0 || steps < fewest || steps == fewest && index < first {
			d.Choice, fewest, first = c.Choice, steps, index
		}
	}
}

// longerSegment is tried if the data is at least four times as long. Fewer segments mean fewer
// messages and wake-ups, but pipelines fill more slowly. A much longer segment would no longer
// be in the cache at the sender's next step.
const longerSegment = 1 << 20

// minGain is the largest ratio, of the price with longer segments to the price with the usual
// segments, for which longer segments are chosen. The margin is needed because pipelines
// overlap less evenly than the model predicts, and because the model has no caches.
const minGain = 0.99

// price sets the price of candidate c, which is the least price over the lengths of segments
// that it tries, and the length of segments with that price.
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
		if seconds := r.Time * correction; i == 0 || seconds < c.Seconds*minGain {
			c.Seconds, c.Segment = seconds, segment
		}
	}
	c.Channels = Channels(q.Bytes, q.Params.P)
	return nil
}

// MaxChannels bounds the number of connections that a lane uses in turn. More connections would
// not be faster.
const MaxChannels = 16

// Channels returns the number of connections that a lane uses in turn if a choice does not set
// Channels. A socket is locked while received data is copied out of it, and data that arrives
// meanwhile waits. With several connections, data can arrive on one connection while data is
// copied out of another. On loopback, several connections reduce the time of messages between
// 128 KiB and some megabytes by up to a half. They do not change the time of longer messages.
// Shorter messages have only one segment, which uses one connection. Groups of many ranks have
// many connections in any case, so each of their lanes has only one.
func Channels(bytes, ranks int) int {
	if ranks > maxStripedRanks || bytes/max(ranks, 1) < minStripedBytes {
		return 1
	}
	return stripes
}

const (
	stripes         = 4
	maxStripedRanks = 16        // largest number of ranks for which a lane has several connections
	minStripedBytes = 128 << 10 // least number of bytes of a block for which a lane has several connections
)

// maxSegments bounds the number of segments for which one candidate is simulated. The usual
// number of segments is far below the bound, so that pipelines are simulated with segments of
// their real length.
const maxSegments = 1 << 16

// refusal returns the reason why an algorithm does not compete, or "" if it competes.
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
