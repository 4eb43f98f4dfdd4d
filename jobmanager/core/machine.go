package core

// table has the transitions of a state machine: from a state, by an event, to a state. An event
// without a transition is late, repeated or out of turn; the caller decides which.
type table[S, E comparable] map[S]map[E]S

// next returns the state after an event, and whether there is one.
func (t table[S, E]) next(state S, event E) (S, bool) {
	after, ok := t[state][event]
	return after, ok
}
