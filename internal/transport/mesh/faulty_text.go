package mesh

import (
	"fmt"
	"strconv"
	"strings"
)

// String returns the text of the plan: its seed and its rules, separated by semicolons.
//
//	seed 7; drop 0->2 #17; delay 1->* 1/8 20ms; corrupt header *->* channel 1 every 5
//
// A rule has these parts: the kind of fault; "header" if it concerns the header; the sender and
// the receiver ("*" for any); "channel" and a number, unless the rule is for all channels;
// which messages have the fault ("#17" for the 17th, "every 5" for each 5th, "1/8" for each
// message with probability 1/8); and the duration of a delay.
func (p FaultPlan) String() string {
	parts := []string{"seed " + strconv.FormatUint(p.Seed, 10)}
	for _, r := range p.Rules {
		parts = append(parts, r.String())
	}
	return strings.Join(parts, "; ")
}

// String returns the text of the rule in a plan. The text is part of the seed of the rule's
// random numbers.
func (r FaultRule) String() string {
	var b strings.Builder
	b.WriteString(r.Kind.String())
	if r.Header {
		b.WriteString(" header")
	}
	fmt.Fprintf(&b, " %s->%s", anyOr(r.From), anyOr(r.To))
	if r.Channel != Any {
		fmt.Fprintf(&b, " channel %d", r.Channel)
	}
	switch {
	case r.Message != 0:
		fmt.Fprintf(&b, " #%d", r.Message)
	case r.Every != 0:
		fmt.Fprintf(&b, " every %d", r.Every)
	default:
		fmt.Fprintf(&b, " %d/%d", r.Out, r.Of)
	}
	if r.Kind == Delay {
		fmt.Fprintf(&b, " %v", r.Delay)
	}
	return b.String()
}

func anyOr(n int) string {
	if n == Any {
		return "*"
	}
	return strconv.Itoa(n)
}
