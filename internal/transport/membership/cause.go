package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// textError is a cause as received by processes other than the one that found it: its text, and
// the parts of it that errors.Is and errors.As find.
type textError struct {
	text string
	of   error // a PeerError, a MismatchError, or one of kinds; or nil
}

func (e *textError) Error() string { return e.text }
func (e *textError) Unwrap() error { return e.of }

// kinds are the errors that keep their identity when sent, by number. The first stands for
// none.
var kinds = []error{nil, ErrLeft, ErrTimeout, context.Canceled, context.DeadlineExceeded, lostPeer{}, ErrDamaged, ErrReplaced}

// lostPeer stands for an error whose method PeerLost() bool returns true: another network
// reports with it that some process is gone. A receiver must not take it for the cause either.
type lostPeer struct{}

func (lostPeer) Error() string  { return "another process is lost" }
func (lostPeer) PeerLost() bool { return true }

// kindOf returns the index of err in kinds. Damage is a cause, even if a peer was lost because
// of it.
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

// Encodings of causes.
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

// rank appends a rank that came from a caller and may be invalid.
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

// received returns err as other processes receive it. The coordinator keeps causes in this
// form, so that its own process has the same cause as the others.
func received(err error) error {
	var e encoder
	e.cause(err)
	d := decoder{rest: e.buf}
	return d.cause()
}

// Describe returns an operation and its number in words.
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
