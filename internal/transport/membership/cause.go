package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// textError is a cause that was received from another process. It has the text of the cause,
// and the wrapped error that errors.Is and errors.As find in it.
type textError struct {
	text    string
	wrapped error // a PeerError, a MismatchError or an element of kinds; nil if the cause wraps none of these
}

func (e *textError) Error() string { return e.text }
func (e *textError) Unwrap() error { return e.wrapped }

// kinds has the errors that errors.Is still finds in a cause after the cause was sent. A cause
// is sent with an index of kinds; index 0 means that the cause wraps none of these errors.
var kinds = []error{nil, ErrLeft, ErrTimeout, context.Canceled, context.DeadlineExceeded, lostPeer{}, ErrDamaged, ErrReplaced}

// lostPeer replaces, in messages, an error whose method PeerLost() bool returns true. Other
// networks report by such errors that another process is lost. Such an error is a consequence
// of another failure, and a receiver must be able to detect that it is not the cause.
type lostPeer struct{}

func (lostPeer) Error() string  { return "another process is lost" }
func (lostPeer) PeerLost() bool { return true }

// kindOf returns the index in kinds for err. ErrDamaged takes precedence over lostPeer: if a
// peer was lost because of damage, the damage is the cause.
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

// These are the encodings of causes.
const (
	causeText = iota
	causePeer
	causeMismatch
	causeWrappedPeer // the PeerError is preceded by the text of the error that wraps it
	causeWrappedMismatch
)

// cause writes or reads an error. A PeerError or MismatchError is encoded by its fields. An
// error that wraps a PeerError or MismatchError is encoded by its text and the wrapped error.
// Any other error is encoded by its text and kind. cause returns the error that was read, which
// is not nil.
func (c *coder) cause(err error) error {
	shape, text := causeText, ""
	var peer *PeerError
	var mismatch *MismatchError
	if !c.reading {
		text = err.Error()
		switch p, m := errors.As(err, &peer), errors.As(err, &mismatch); {
		case p && error(peer) == err:
			shape = causePeer
		case m && error(mismatch) == err:
			shape = causeMismatch
		case p:
			shape = causeWrappedPeer
		case m:
			shape = causeWrappedMismatch
		}
	}
	num(c, &shape, causeWrappedMismatch)
	if shape != causePeer && shape != causeMismatch {
		c.text(&text, maxText)
	}
	switch shape {
	case causeText:
		return &textError{text, c.kind(err)}
	case causePeer:
		return c.peer(peer)
	case causeMismatch:
		return c.mismatch(mismatch)
	case causeWrappedPeer:
		return &textError{text, c.peer(peer)}
	default:
		return &textError{text, c.mismatch(mismatch)}
	}
}

// kind writes or reads the kind of an error, as its index in kinds.
func (c *coder) kind(err error) error {
	i := kindOf(err)
	num(c, &i, uint64(len(kinds)-1))
	return kinds[i]
}

func (c *coder) peer(p *PeerError) *PeerError {
	var v PeerError
	if p != nil {
		v = *p
	}
	c.flag(&v.Worker)
	num(c, &v.Rank, maxRanks)
	num(c, &v.Reporter, maxRanks)
	c.text(&v.Address, maxHost)
	c.text(&v.During, maxDoing)
	c.text(&v.Reason, maxText)
	v.Kind = c.kind(v.Kind)
	return &v
}

func (c *coder) mismatch(m *MismatchError) *MismatchError {
	var v MismatchError
	if m != nil {
		v = *m
	}
	num(c, &v.Rank, maxRanks)
	num(c, &v.Other, maxRanks)
	c.text(&v.Doing, maxDoing)
	c.text(&v.OtherDoing, maxDoing)
	return &v
}

// afterTransfer returns the error that other processes receive if err is sent. The coordinator
// stores causes after this conversion, so that its own process has the same cause as the
// others.
func afterTransfer(err error) error {
	var c coder
	c.cause(err)
	c.reading = true
	return c.cause(nil)
}

// Describe returns text for error messages that names the operation op and its number seq.
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
