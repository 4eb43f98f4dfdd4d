package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Misuse is one mistake in a graph.
type Misuse struct {
	// Site is the user's source line, such as "main.go:31", or "node 3" if the node
	// has no source line. It is empty if the mistake concerns the whole job.
	Site string
	// Op is the kind of the operator. It is empty if the mistake concerns no operator.
	Op string
	// Message says what is wrong and what to do.
	Message string
}

// Error returns "site: operator: message".
func (m *Misuse) Error() string {
	var b strings.Builder
	for _, part := range [...]string{m.Site, m.Op} {
		if part != "" {
			b.WriteString(part)
			b.WriteString(": ")
		}
	}
	b.WriteString(m.Message)
	return b.String()
}

// Misuses returns the mistakes that Validate or Compile joined into err, in
// order. Errors of other types are left out.
func Misuses(err error) []*Misuse {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Misuse
		for _, e := range joined.Unwrap() {
			all = append(all, Misuses(e)...)
		}
		return all
	}
	var m *Misuse
	if errors.As(err, &m) {
		return []*Misuse{m}
	}
	return nil
}

// maxMisuses limits the number of mistakes that one call of Validate returns. Nobody would read
// more, and a hostile graph can have one mistake per byte.
const maxMisuses = 100

// misuses collects mistakes.
type misuses struct {
	found   []located
	dropped int
}

// located is a mistake and the position of its node, or -1 if it concerns no node.
type located struct {
	node int
	*Misuse
}

func (m *misuses) full() bool { return len(m.found) >= maxMisuses }

func (m *misuses) add(node int, site, op, format string, args ...any) {
	if m.full() {
		m.dropped++
		return
	}
	m.found = append(m.found, located{node, &Misuse{Site: site, Op: op, Message: fmt.Sprintf(format, args...)}})
}

// err joins the mistakes in the order of their nodes, which is usually the order of
// source lines.
func (m *misuses) err() error {
	slices.SortStableFunc(m.found, func(a, b located) int { return a.node - b.node })
	all := make([]error, 0, len(m.found)+1)
	for _, l := range m.found {
		all = append(all, l.Misuse)
	}
	if m.dropped > 0 {
		all = append(all, &Misuse{Message: fmt.Sprintf("and %d more errors", m.dropped)})
	}
	return errors.Join(all...)
}

// clip returns s if it has at most n runes, else its first n-1 runes and an ellipsis.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	count := 0
	for i := range s {
		if count == n-1 {
			if utf8.RuneCountInString(s[i:]) == 1 {
				return s
			}
			return s[:i] + "…"
		}
		count++
	}
	return s
}

// plain returns s with unprintable characters escaped as in a Go string, so that s
// takes one line and cannot break the layout of a text.
func plain(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) || r == utf8.RuneError }) < 0 {
		return s
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}
