package mesh

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// FaultPlan determines which messages of a group have faults, and of which kinds. The fault of
// a message depends only on the plan, on the connection, and on the number of the message on
// the connection. It does not depend on timing.
//
// There are two ways to insert the faults of a plan. [NewFaulty] inserts them above any mesh,
// into the messages that are passed to the mesh, to test the checks of executors.
// [FaultPlan.OnWire] inserts them below a TCP mesh, into the bytes of its connections, to test
// framing and checksums.
type FaultPlan struct {
	Seed  uint64
	Rules []FaultRule // if several rules apply to a message, all their delays are added up, and of the rules of other kinds only the first is used
}

// FaultRule inserts a fault into some messages of some connections. The messages of each
// direction of a connection are numbered from 1. Exactly one of Message, Every and Of must be
// set.
type FaultRule struct {
	Kind   FaultKind
	Header bool // for Truncate and Corrupt: the fault is in the header instead of the payload

	From, To int // sending and receiving rank, or Any
	Channel  int // number of the channel, or Any

	Message uint64 // the number of the only message with the fault
	Every   uint64 // messages whose numbers are multiples of Every have the fault
	Out, Of uint32 // each message has the fault with probability Out/Of, drawn independently

	Delay time.Duration // for kind Delay: the time for which the sending goroutine waits
}

// Any in a FaultRule means all ranks or all channels.
const Any = -1

// FaultKind is a kind of fault of a message.
type FaultKind uint8

// These are the kinds of faults. Lengths and the bits to flip are drawn at random.
const (
	// Drop means that the message is never sent.
	Drop FaultKind = iota + 1
	// Delay means that the message is sent later, and so are all messages after it.
	Delay
	// Truncate means that the end of the payload is missing. Above a mesh, the header has the
	// length of the shorter payload, since a Conn accepts no other length. On the wire, if
	// Header is set, the header has a smaller length but the whole payload follows it, so that
	// the receiver reads the end of the payload as the next message. On the wire without
	// Header, the header has the full length, but the next message follows directly after the
	// shorter payload.
	Truncate
	// Duplicate means that the message is sent twice.
	Duplicate
	// Corrupt means that a bit is flipped: a bit of the header if Header is set, and otherwise
	// a bit of the payload. An empty payload is not changed.
	Corrupt
	// Cut means that the connection ends. On the wire it ends in the middle of the message.
	Cut
)

var faultNames = [...]string{Drop: "drop", Delay: "delay", Truncate: "truncate", Duplicate: "duplicate", Corrupt: "corrupt", Cut: "cut"}

// String returns the name that the kind has in the text of a plan.
func (k FaultKind) String() string {
	if k < Drop || k > Cut {
		return fmt.Sprintf("FaultKind(%d)", uint8(k))
	}
	return faultNames[k]
}

// These are the upper bounds of the values in rules. They ensure that the channel and the
// message number together fit in the 64-bit number of a draw.
const (
	maxFaultRank    = 1 << 20
	maxFaultMessage = 1 << 48
	maxFaultDelay   = time.Hour
)

// Check returns an error if the plan is invalid.
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

// concerns reports whether the rule applies to messages between two ranks on a channel.
func (r *FaultRule) concerns(from, to, channel int) bool {
	is := func(want, got int) bool { return want == Any || want == got }
	return is(r.From, from) && is(r.To, to) && is(r.Channel, channel)
}

// faults has the state that determines the faults of the messages of one direction of a
// connection. Its method next returns the faults of one message after the other.
type faults struct {
	rules   []seededRule
	channel uint64
	number  uint64 // number of the latest message
}

// seededRule is a rule with its random numbers. The random numbers do not depend on other rules
// of the plan. So rules can be removed from a plan one by one, to find the rule that makes a
// test fail.
type seededRule struct {
	FaultRule
	random sharding.Random
}

// fault is the fault of one message.
type fault struct {
	kind   FaultKind // 0 if there is no fault except the delay
	header bool
	rule   *FaultRule
	number uint64
	draw   uint64 // random value from which the length or the bit is chosen
	delay  time.Duration
}

// of returns the faults of the messages between two ranks on a channel.
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

// hits reports whether the rule applies to the message with the given number. If the rule has a
// probability, the random number with index at decides.
func (r *seededRule) hits(number, at uint64) bool {
	switch {
	case r.Message != 0:
		return number == r.Message
	case r.Every != 0:
		return number%r.Every == 0
	}
	// This is r.random.At(at)*Of/2^64. As Of is below 2^32, the probability is exact up to
	// 2^-32.
	scaled, _ := bits.Mul64(r.random.At(at), uint64(r.Of))
	return scaled < uint64(r.Out)
}

// flip returns a copy of b in which the drawn bit is flipped, or b itself if b is empty.
func (f *fault) flip(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	b = append([]byte(nil), b...)
	bit := f.draw % uint64(8*len(b))
	b[bit/8] ^= 1 << (bit % 8)
	return b
}

// shorter returns a drawn length that is less than n, or 0 if n is 0.
func (f *fault) shorter(n int) int {
	if n == 0 {
		return 0
	}
	return int(f.draw % uint64(n))
}
