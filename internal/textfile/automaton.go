package textfile

import (
	"bytes"
)

// A state of the quoting automaton determines how the next byte is interpreted. If the state
// before a byte is stateRecord, a record, an empty line or a comment begins at this byte, and
// only then.
type state uint8

const (
	stateRecord  state = iota // at the first byte of a line outside quotes
	stateField                // at the first byte of a cell after the first cell
	stateText                 // inside an unquoted cell
	stateQuoted               // inside quotes
	stateQuote                // after a closing quote, or the first byte of a doubled quote
	stateComment              // inside a comment line
	numStates
)

// Transition maps the state before a range of bytes to the state after it, for every state.
// Transitions of adjacent ranges can be composed, so that ranges can be scanned independently
// of each other (Ladner and Fischer, "Parallel Prefix Computation", 1980).
type Transition [numStates]uint8

// identity returns the transition of the empty range.
func identity() Transition {
	var t Transition
	for s := range t {
		t[s] = uint8(s)
	}
	return t
}

// then returns the transition of a range that consists of the range of t and the range of next
// after it.
func (t Transition) then(next Transition) Transition {
	for s := range t {
		t[s] = next[t[s]]
	}
	return t
}

// automaton has the transitions of the quoting automaton of a dialect. They are defined for all
// bytes, also for bytes that make a record malformed: a quote inside an unquoted cell is text,
// and text after a closing quote is unquoted text. So the beginnings of records are defined for
// any input, even if the tokenizer rejects it.
type automaton struct {
	next    [numStates][256]state
	quote   byte
	quoting bool
}

func newAutomaton(d Dialect) *automaton {
	a := &automaton{quote: d.Quote, quoting: d.Quote != NoByte}
	for c := range 256 {
		a.next[stateText][c] = stateText
		a.next[stateRecord][c] = stateText
		a.next[stateField][c] = stateText
		a.next[stateQuote][c] = stateText
		a.next[stateQuoted][c] = stateQuoted
		a.next[stateComment][c] = stateComment
	}
	if d.TrimSpace {
		for _, c := range []byte{' ', '\t'} {
			a.next[stateRecord][c] = stateField
			a.next[stateField][c] = stateField
		}
	}
	if d.Comment != NoByte {
		a.next[stateRecord][d.Comment] = stateComment
	}
	if a.quoting {
		a.next[stateRecord][d.Quote] = stateQuoted
		a.next[stateField][d.Quote] = stateQuoted
		a.next[stateQuoted][d.Quote] = stateQuote
		a.next[stateQuote][d.Quote] = stateQuoted
	}
	for _, s := range []state{stateRecord, stateField, stateText, stateQuote} {
		a.next[s][d.Delimiter] = stateField
	}
	for s := range numStates {
		if s != stateQuoted {
			a.next[s]['\n'] = stateRecord
		}
	}
	return a
}

// run returns the state after b.
func (a *automaton) run(s state, b []byte) state {
	for _, c := range b {
		s = a.next[s][c]
	}
	return s
}

// recordStart runs the automaton on b from state s, and returns the first index at which it is
// in stateRecord before it reads the byte. The index may be len(b). If there is no such index,
// recordStart returns -1 and the state after b.
func (a *automaton) recordStart(s state, b []byte) (int, state) {
	for i, c := range b {
		if s == stateRecord {
			return i, s
		}
		s = a.next[s][c]
	}
	if s == stateRecord {
		return len(b), s
	}
	return -1, s
}

// scanBlock is the size in bytes of the blocks in which a range is searched for quotes.
const scanBlock = 16 << 10

// transition returns the transition of b. In a block without quotes, only the text after the
// last newline matters. In other blocks, the automaton is run from each state that is still
// possible; after a newline, at most two states are possible.
func (a *automaton) transition(b []byte) Transition {
	t := identity()
	for len(b) > 0 {
		block := b[:min(len(b), scanBlock)]
		b = b[len(block):]
		var step Transition
		if a.quoting && bytes.IndexByte(block, a.quote) >= 0 {
			step = a.runAll(t, block)
		} else {
			step = a.runUnquoted(block)
		}
		t = t.then(step)
	}
	return t
}

// runUnquoted returns the transition of a block without quotes.
func (a *automaton) runUnquoted(block []byte) Transition {
	var t Transition
	last := bytes.LastIndexByte(block, '\n')
	if last >= 0 {
		end := uint8(a.run(stateRecord, block[last+1:]))
		for s := range t {
			t[s] = end
		}
	} else {
		for s := range t {
			t[s] = uint8(a.run(state(s), block))
		}
	}
	t[stateQuoted] = uint8(stateQuoted)
	return t
}

// runAll returns the transition of a block for the states to which t can lead. Its entries for
// other states are not used.
func (a *automaton) runAll(t Transition, block []byte) Transition {
	var live [numStates]bool
	for _, s := range t {
		live[s] = true
	}
	starts := make([]state, 0, numStates)
	for s, on := range live {
		if on {
			starts = append(starts, state(s))
		}
	}
	step := identity()
	if len(starts) == 2 {
		// Both states are advanced in one loop, so that their table look-ups overlap.
		x, y := starts[0], starts[1]
		for _, c := range block {
			x, y = a.next[x][c], a.next[y][c]
		}
		step[starts[0]], step[starts[1]] = uint8(x), uint8(y)
		return step
	}
	for _, s := range starts {
		step[s] = uint8(a.run(s, block))
	}
	return step
}
