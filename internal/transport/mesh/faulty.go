package mesh

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// FaultPlan says which messages of a group go wrong, and how. The fault of a message does not
// depend on timing, only on the plan, the connection, and the number of the message on the
// connection.
//
// A plan is carried out in one of two places. [NewFaulty] does it above a mesh, where messages
// are handed over, to test the checks of executors over any mesh. [FaultPlan.OnWire] does it
// below a TCP mesh, on the bytes of its connections, to test framing and checksums.
type FaultPlan struct {
	Seed  uint64
	Rules []FaultRule // for a message hit by several, delays add up; of other kinds the first counts
}

// FaultRule makes some messages of some connections go wrong. A direction of a connection is a
// sequence of messages, numbered from 1. Exactly one of Message, Every and Of is set.
type FaultRule struct {
	Kind   FaultKind
	Header bool // Truncate and Corrupt: the header, not the payload

	From, To int // ranks, or Any
	Channel  int // or Any

	Message uint64 // this one
	Every   uint64 // messages whose numbers are multiples of this
	Out, Of uint32 // each with probability Out/Of, drawn independently

	Delay time.Duration // for Delay: how long the sending goroutine waits
}

// Any stands for all ranks or all channels in a FaultRule.
const Any = -1

// FaultKind is what happens to a message.
type FaultKind uint8

// The kinds of faults. The byte or bit concerned is drawn at random.
const (
	// Drop: the message is never sent.
	Drop FaultKind = iota + 1
	// Delay: it is held back, and so are all messages behind it.
	Delay
	// Truncate: the end of the payload is missing. Above a mesh the header announces the
	// shorter payload, since a Conn accepts no other. On the wire the header does so only with
	// Header set, and the rest of the payload follows in the place of the next message; without
	// Header, the next message begins within the announced length.
	Truncate
	// Duplicate: it is sent twice.
	Duplicate
	// Corrupt: a bit of the payload is flipped, or with Header a bit of the header. An empty
	// payload stays as it is.
	Corrupt
	// Cut: the connection ends, on the wire in the middle of the message.
	Cut
)

var faultNames = [...]string{Drop: "drop", Delay: "delay", Truncate: "truncate", Duplicate: "duplicate", Corrupt: "corrupt", Cut: "cut"}

// String is the name of the kind in the text of a plan.
func (k FaultKind) String() string {
	if k < Drop || k > Cut {
		return fmt.Sprintf("FaultKind(%d)", uint8(k))
	}
	return faultNames[k]
}

// Bounds of rules, so that a message's position in a plan fits the counter of a draw.
const (
	maxFaultRank    = 1 << 20
	maxFaultMessage = 1 << 48
	maxFaultDelay   = time.Hour
)

// Check returns an error if a plan is invalid.
func (p *FaultPlan) Check() error {
	for i := range p.Rules {
		if err := p.Rules[i].check(); err != nil {
			return fmt.Errorf("rule %d of the fault plan: %w", i+1, err)
		}
	}
	return nil
}

func (r *FaultRule) check() error {
	whens := 0
	for _, set := range [...]bool{r.Message != 0, r.Every != 0, r.Of != 0} {
		if set {
			whens++
		}
	}
	switch {
	case r.Kind < Drop || r.Kind > Cut:
		return fmt.Errorf("there is no fault of kind %d", uint8(r.Kind))
	case r.Header && r.Kind != Truncate && r.Kind != Corrupt:
		return fmt.Errorf("%s concerns whole messages, not headers", r.Kind)
	case r.From < Any || r.From >= maxFaultRank || r.To < Any || r.To >= maxFaultRank:
		return fmt.Errorf("from rank %d to rank %d: ranks go from 0 to %d, and %d stands for all", r.From, r.To, maxFaultRank-1, Any)
	case r.From == r.To && r.From != Any:
		return fmt.Errorf("rank %d has no connection to itself", r.From)
	case r.Channel < Any || r.Channel >= MaxChannels:
		return fmt.Errorf("channel %d: channels go from 0 to %d, and %d stands for all", r.Channel, MaxChannels-1, Any)
	case whens != 1:
		return fmt.Errorf("%d of Message, Every and Of are set: set one", whens)
	case r.Of == 0 && r.Out != 0, r.Of != 0 && (r.Out == 0 || r.Out > r.Of):
		return fmt.Errorf("a probability of %d/%d: it must be above 0 and at most 1", r.Out, r.Of)
	case max(r.Message, r.Every) > maxFaultMessage:
		return fmt.Errorf("message %d: numbers go from 1 to %d", max(r.Message, r.Every), uint64(maxFaultMessage))
	case r.Kind == Delay && (r.Delay <= 0 || r.Delay > maxFaultDelay):
		return fmt.Errorf("a delay of %v: it must be above 0 and at most %v", r.Delay, maxFaultDelay)
	case r.Kind != Delay && r.Delay != 0:
		return fmt.Errorf("%s takes no duration", r.Kind)
	}
	return nil
}

// concerns reports whether a rule applies to a direction of a connection.
func (r *FaultRule) concerns(from, to, channel int) bool {
	is := func(want, got int) bool { return want == Any || want == got }
	return is(r.From, from) && is(r.To, to) && is(r.Channel, channel)
}

// faults returns the faults of the messages of one direction of a connection, one after the
// other.
type faults struct {
	rules   []seededRule
	channel uint64
	number  uint64 // of the latest message
}

// armed is a rule with its draws. They do not depend on other rules, so that a plan can be
// reduced, rule by rule, to the one that matters.
type seededRule struct {
	FaultRule
	random sharding.Random
}

// fault is what happens to one message.
type fault struct {
	kind   FaultKind // 0: nothing but the delay
	header bool
	rule   *FaultRule
	number uint64
	draw   uint64 // random value for the choices of the kind
	delay  time.Duration
}

// of returns the faults of a direction of a connection.
func (p *FaultPlan) of(from, to, channel int) *faults {
	f := &faults{channel: uint64(channel)}
	for _, r := range p.Rules {
		if r.concerns(from, to, channel) {
			f.rules = append(f.rules, seededRule{r, sharding.NewRandom(p.Seed, r.String(), from, to)})
		}
	}
	return f
}

// next returns the fault of the next message.
func (f *faults) next() fault {
	f.number++
	found := fault{number: f.number}
	for i := range f.rules {
		r := &f.rules[i]
		at := f.channel<<50 | f.number<<1
		if !r.hits(f.number, at) {
			continue
		}
		if r.Kind == Delay {
			found.delay += r.Delay
		} else if found.kind == 0 {
			found.kind, found.header, found.rule, found.draw = r.Kind, r.Header, &r.FaultRule, r.random.At(at|1)
		}
	}
	return found
}

// hits reports whether the rule hits a message; draw number at decides.
func (r *seededRule) hits(number, at uint64) bool {
	switch {
	case r.Message != 0:
		return number == r.Message
	case r.Every != 0:
		return number%r.Every == 0
	}
	// Of is more than 2^32 times smaller than the range of a draw, so this is exact enough.
	scaled, _ := bits.Mul64(r.random.At(at), uint64(r.Of))
	return scaled < uint64(r.Out)
}

// flip returns a copy of b with the drawn bit flipped, or b if it has none.
func (f *fault) flip(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	b = append([]byte(nil), b...)
	bit := f.draw % uint64(8*len(b))
	b[bit/8] ^= 1 << (bit % 8)
	return b
}

// shorter returns the drawn length below n, or 0 if n is 0.
func (f *fault) shorter(n int) int {
	if n == 0 {
		return 0
	}
	return int(f.draw % uint64(n))
}
