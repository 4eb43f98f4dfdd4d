package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// textError is a cause as it arrives at processes other than the one that found
// it: the text, and those of its parts that a program can ask for.
type textError struct {
	text string
	of   error // a PeerError, a MismatchError, or one of kinds; or nil
}

func (e *textError) Error() string { return e.text }
func (e *textError) Unwrap() error { return e.of }

// kinds are the errors that keep their identity on the way, by number. The first
// stands for none.
var kinds = []error{nil, ErrLeft, ErrTimeout, context.Canceled, context.DeadlineExceeded, lostPeer{}, ErrDamaged, ErrReplaced}

// lostPeer stands for an error with a method PeerLost() bool that returns true: who
// reports it, a network beside this one, only says that somebody else is gone. Where
// it arrives it must not pass for the cause either.
type lostPeer struct{}

func (lostPeer) Error() string  { return "another process is lost" }
func (lostPeer) PeerLost() bool { return true }

// kindOf is the index in kinds of what err is. What was damaged is a cause, whoever was
// lost over it.
func kindOf(err error) int {
	if errors.Is(err, ErrDamaged) {
		return slices.Index(kinds, ErrDamaged)
	}
	var lost interface{ PeerLost() bool }
	var rank *PeerError
	if errors.As(err, &lost) && lost.PeerLost() && !(errors.As(err, &rank) && !rank.Worker) {
		return slices.Index(kinds, error(lostPeer{}))
	}
	for i, k := range kinds[1:] {
		if errors.Is(err, k) {
			return i + 1
		}
	}
	return 0
}

// Shapes of causes on the wire.
const (
	causeText = iota
	causePeer
	causeMismatch
	causeWrappedPeer // a text around the error
	causeWrappedMismatch
)

// cause appends an error: itself if it is a PeerError or a MismatchError; the text
// and the error within if it wraps one; else the text and its kind.
func (e *encoder) cause(err error) {
	var peer *PeerError
	var mismatch *MismatchError
	switch p, m := errors.As(err, &peer), errors.As(err, &mismatch); {
	case p && error(peer) == err:
		e.num(causePeer)
		e.peer(peer)
	case m && error(mismatch) == err:
		e.num(causeMismatch)
		e.mismatch(mismatch)
	case p:
		e.num(causeWrappedPeer)
		e.text(err.Error(), maxText)
		e.peer(peer)
	case m:
		e.num(causeWrappedMismatch)
		e.text(err.Error(), maxText)
		e.mismatch(mismatch)
	default:
		e.num(causeText)
		e.text(err.Error(), maxText)
		e.num(uint64(kindOf(err)))
	}
}

// rank appends a rank that came from a caller and may be none.
func (e *encoder) rank(r int) { e.num(uint64(min(max(0, r), maxRanks))) }

func (e *encoder) peer(p *PeerError) {
	e.flag(p.Worker)
	e.rank(p.Rank)
	e.rank(p.Reporter)
	e.text(p.Address, maxHost)
	e.text(p.During, maxDoing)
	e.text(p.Reason, maxText)
	e.num(uint64(kindOf(p.Kind)))
}

func (e *encoder) mismatch(m *MismatchError) {
	e.rank(m.Rank)
	e.rank(m.Other)
	e.text(m.Doing, maxDoing)
	e.text(m.OtherDoing, maxDoing)
}

// cause reads an error; it is not nil unless the decoder has failed.
func (d *decoder) cause() error {
	shape := d.num(causeWrappedMismatch)
	text := ""
	if shape != causePeer && shape != causeMismatch {
		text = d.text(maxText)
	}
	switch shape {
	case causeText:
		return &textError{text, kinds[d.num(uint64(len(kinds)-1))]}
	case causePeer:
		return d.peer()
	case causeMismatch:
		return d.mismatch()
	case causeWrappedPeer:
		return &textError{text, d.peer()}
	default:
		return &textError{text, d.mismatch()}
	}
}

func (d *decoder) peer() *PeerError {
	p := &PeerError{Worker: d.flag(), Rank: int(d.num(maxRanks)), Reporter: int(d.num(maxRanks))}
	p.Address = d.text(maxHost)
	p.During = d.text(maxDoing)
	p.Reason = d.text(maxText)
	p.Kind = kinds[d.num(uint64(len(kinds)-1))]
	return p
}

func (d *decoder) mismatch() *MismatchError {
	m := &MismatchError{Rank: int(d.num(maxRanks)), Other: int(d.num(maxRanks))}
	m.Doing = d.text(maxDoing)
	m.OtherDoing = d.text(maxDoing)
	return m
}

// received is err as it arrives elsewhere. The coordinator keeps causes in this
// form, so that its own process has no other cause than the rest.
func received(err error) error {
	var e encoder
	e.cause(err)
	d := decoder{rest: e.buf}
	return d.cause()
}

// Describe says in words what a rank is in: the operation and its number.
func Describe(seq uint64, op *Operation) string {
	if op == nil {
		return describe(seq, "")
	}
	return describe(seq, op.Text)
}

func describe(seq uint64, text string) string {
	if text == "" {
		text = "operation"
	}
	return fmt.Sprintf("%s #%d", text, seq)
}
