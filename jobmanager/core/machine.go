package core

// table has the transitions of a state machine: t[s][e] is the state after event e in state s.
// An event without a transition is late, repeated or not allowed; the caller decides which of
// these applies.
type table[S, E comparable] map[S]map[E]S

// next returns the state that follows state on event, and whether there is such a transition.
func (t table[S, E]) next(state S, event E) (S, bool) {
	after, ok := t[state][event]
	return after, ok
}
