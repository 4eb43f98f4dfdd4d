package mesh

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// String returns the text of the plan: its seed and its rules, separated by semicolons.
//
//	seed 7; drop 0->2 #17; delay 1->* 1/8 20ms; corrupt header *->* channel 1 every 5
//
// A rule has these parts: the kind of fault; "header" if it concerns the header; the sender and
// the receiver ("*" for any); "channel" and a number unless any channel will do; which messages
// ("#17" for the 17th, "every 5" for each 5th, "1/8" for one in eight, drawn); and the length
// of a delay.
func (p FaultPlan) String() string {
	parts := []string{"seed " + strconv.FormatUint(p.Seed, 10)}
	for _, r := range p.Rules {
		parts = append(parts, r.String())
	}
	return strings.Join(parts, "; ")
}

// String returns the text of the rule in a plan.
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

// ParseFaultPlan reads the text of a plan. Rules stand on lines of their own or are
// separated by semicolons; a plan that does not name its seed has seed 0. Errors say
// where they are.
func ParseFaultPlan(text string) (FaultPlan, error) {
	var p FaultPlan
	seeded := false
	for number, line := range strings.Split(text, "\n") {
		at := 0
		for _, part := range strings.Split(line, ";") {
			s := &faultScanner{line: number + 1, text: part, before: at}
			at += len(part) + 1
			if !s.advance() {
				continue
			}
			if s.word == "seed" {
				if seeded {
					return FaultPlan{}, s.wrong("a second seed")
				}
				seeded = true
				if err := s.parseSeed(&p.Seed); err != nil {
					return FaultPlan{}, err
				}
				continue
			}
			r, err := s.parseRule()
			if err != nil {
				return FaultPlan{}, err
			}
			p.Rules = append(p.Rules, r)
		}
	}
	return p, nil
}

// faultScanner walks over the words of a rule. word is the current one, "" at the end.
type faultScanner struct {
	line   int
	text   string
	before int // bytes of the line before the text
	start  int // start of the word
	end    int
	word   string
}

// advance goes to the next word, and says whether there is one.
func (s *faultScanner) advance() bool {
	space := func(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }
	s.start = s.end
	for s.start < len(s.text) && space(s.text[s.start]) {
		s.start++
	}
	s.end = s.start
	for s.end < len(s.text) && !space(s.text[s.end]) {
		s.end++
	}
	s.word = s.text[s.start:s.end]
	return s.word != ""
}

// wrong returns an error about the current word.
func (s *faultScanner) wrong(format string, args ...any) error {
	return fmt.Errorf("fault plan, line %d, column %d: %s", s.line, s.before+s.start+1, fmt.Sprintf(format, args...))
}

// found returns the current word for errors.
func (s *faultScanner) found() string {
	if s.word == "" {
		return "the end of the rule"
	}
	return strconv.Quote(s.word)
}

func (s *faultScanner) parseSeed(seed *uint64) (err error) {
	s.advance()
	if *seed, err = strconv.ParseUint(s.word, 10, 64); err != nil {
		return s.wrong("a seed is a number of 64 bits, not %s", s.found())
	}
	return s.finish()
}

// finish checks that nothing is left.
func (s *faultScanner) finish() error {
	if s.advance() {
		return s.wrong("%s where the rule should end: rules are separated by semicolons", s.found())
	}
	return nil
}

// parseRule reads a rule, which begins at the current word.
func (s *faultScanner) parseRule() (FaultRule, error) {
	r := FaultRule{Channel: Any}
	begin := *s
	kind := slices.Index(faultNames[:], s.word)
	if kind < int(Drop) {
		return r, s.wrong("%s is no fault: there are %s", s.found(), strings.Join(faultNames[Drop:], ", "))
	}
	r.Kind = FaultKind(kind)
	if s.advance(); s.word == "header" {
		r.Header = true
		s.advance()
	}
	for _, part := range []func(*FaultRule) error{s.parseRoute, s.parseChannel, s.parseWhen, s.parseDelay} {
		if err := part(&r); err != nil {
			return r, err
		}
	}
	if s.word != "" {
		return r, s.wrong("%s where the rule should end: rules are separated by semicolons", s.found())
	}
	if err := r.check(); err != nil {
		return r, begin.wrong("%v", err)
	}
	return r, nil
}

func (s *faultScanner) parseRoute(r *FaultRule) (err error) {
	from, to, ok := strings.Cut(s.word, "->")
	if ok {
		r.From, err = parseAnyOr(from)
	}
	if ok && err == nil {
		r.To, err = parseAnyOr(to)
	}
	if !ok || err != nil {
		return s.wrong("a route is written like 0->2, 0->* or *->*, not %s", s.found())
	}
	s.advance()
	return nil
}

func (s *faultScanner) parseChannel(r *FaultRule) (err error) {
	if s.word != "channel" {
		return nil
	}
	s.advance()
	if r.Channel, err = parseAnyOr(s.word); err != nil {
		return s.wrong("a channel is a number or *, not %s", s.found())
	}
	s.advance()
	return nil
}

// parseWhen reads which messages a rule concerns.
func (s *faultScanner) parseWhen(r *FaultRule) (err error) {
	const forms = `which messages is written like #17, every 5 or 1/8`
	if number, ok := strings.CutPrefix(s.word, "#"); ok {
		r.Message, err = parsePositive(number, 64)
	} else if s.word == "every" {
		s.advance()
		r.Every, err = parsePositive(s.word, 64)
	} else if out, of, ok := strings.Cut(s.word, "/"); ok {
		var x, y uint64
		if x, err = parsePositive(out, 32); err == nil {
			y, err = parsePositive(of, 32)
		}
		r.Out, r.Of = uint32(x), uint32(y)
	} else {
		return s.wrong("%s, not %s", forms, s.found())
	}
	if err != nil {
		return s.wrong("%s, not %s: %v", forms, s.found(), err)
	}
	s.advance()
	return nil
}

func (s *faultScanner) parseDelay(r *FaultRule) (err error) {
	if r.Kind != Delay {
		return nil
	}
	if r.Delay, err = time.ParseDuration(s.word); err != nil {
		return s.wrong("a delay ends with how long, like 20ms, not %s", s.found())
	}
	s.advance()
	return nil
}

func parseAnyOr(word string) (int, error) {
	if word == "*" {
		return Any, nil
	}
	n, err := strconv.ParseUint(word, 10, 31)
	return int(n), err
}

func parsePositive(word string, bits int) (uint64, error) {
	n, err := strconv.ParseUint(word, 10, bits)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is too large", word)
	case err != nil:
		return 0, errors.New("whole numbers are expected")
	case n == 0:
		return 0, errors.New("numbers begin at 1")
	}
	return n, nil
}
