package tune

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
)

// Rule is a choice for all queries that are within its bounds. All bounds are inclusive. A
// bound of 0 means that there is no bound.
type Rule struct {
	Collective program.Collective
	MinRanks   int
	MaxRanks   int
	MinBytes   int
	MaxBytes   int
	Choice     Choice
}

// String returns a description of the rule.
func (r *Rule) String() string {
	var b strings.Builder
	b.WriteString(r.Collective.String())
	bounds(&b, "ranks", r.MinRanks, r.MaxRanks)
	bounds(&b, "bytes", r.MinBytes, r.MaxBytes)
	fmt.Fprintf(&b, " by %s", r.Choice)
	return b.String()
}

func bounds(b *strings.Builder, what string, lo, hi int) {
	switch {
	case lo > 0 && hi > 0:
		fmt.Fprintf(b, " of %d to %d %s", lo, hi, what)
	case lo > 0:
		fmt.Fprintf(b, " of at least %d %s", lo, what)
	case hi > 0:
		fmt.Fprintf(b, " of at most %d %s", hi, what)
	}
}

func (r *Rule) fits(q Query) bool {
	return r.Collective == q.Collective &&
		q.Params.P >= r.MinRanks && (r.MaxRanks == 0 || q.Params.P <= r.MaxRanks) &&
		q.Bytes >= r.MinBytes && (r.MaxBytes == 0 || q.Bytes <= r.MaxBytes)
}

// ruleFile is the JSON form of rules.
type ruleFile struct {
	Rules []struct {
		Collective string `json:"collective"`
		MinRanks   int    `json:"min_ranks"`
		MaxRanks   int    `json:"max_ranks"`
		MinBytes   int    `json:"min_bytes"`
		MaxBytes   int    `json:"max_bytes"`
		Algorithm  string `json:"algorithm"`
		Segment    int    `json:"segment"`
		Channels   int    `json:"channels"`
	} `json:"rules"`
}

// maxRuleFile bounds the number of bytes that ReadRules reads.
const maxRuleFile = 1 << 20

// ReadRules reads rules from JSON:
//
//	{"rules": [{"collective": "allreduce", "max_bytes": 4096, "algorithm": "recursive-doubling"}]}
//
// An algorithm may have dimensions ("torus:4x8"). For unknown names, and for bounds that no
// collective can satisfy, ReadRules returns an error with the number of the rule. Unknown
// fields are errors too.
func ReadRules(r io.Reader) ([]Rule, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxRuleFile+1))
	if err != nil {
		return nil, fmt.Errorf("tuning rules: %w", err)
	}
	if len(text) > maxRuleFile {
		return nil, fmt.Errorf("tuning rules of more than %d bytes", maxRuleFile)
	}
	var f ruleFile
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("tuning rules: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("tuning rules: more text after the rules")
	}
	rules := make([]Rule, len(f.Rules))
	for i, x := range f.Rules {
		fail := func(format string, args ...any) ([]Rule, error) {
			return nil, fmt.Errorf("tuning rule %d: %s", i+1, fmt.Sprintf(format, args...))
		}
		coll, err := program.ParseCollective(x.Collective)
		if err != nil {
			return fail("%v", err)
		}
		name, dims, err := algorithm.ParseName(x.Algorithm)
		if err != nil {
			return fail("%v", err)
		}
		if _, err := algorithm.Find(coll, name); err != nil {
			return fail("%v", err)
		}
		for _, n := range []int{x.MinRanks, x.MaxRanks, x.MinBytes, x.MaxBytes, x.Segment, x.Channels} {
			if n < 0 {
				return fail("%d is below zero", n)
			}
		}
		if x.Channels > MaxChannels {
			return fail("%d channels, of which there are at most %d", x.Channels, MaxChannels)
		}
		if x.MaxRanks > 0 && x.MinRanks > x.MaxRanks || x.MaxBytes > 0 && x.MinBytes > x.MaxBytes {
			return fail("its least is above its most")
		}
		rules[i] = Rule{coll, x.MinRanks, x.MaxRanks, x.MinBytes, x.MaxBytes, Choice{name, dims, x.Segment, x.Channels}}
	}
	return rules, nil
}
