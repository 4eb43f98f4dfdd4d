package core

// table is the transitions of a state machine: from a state, by an event, to a state.
// What is not in it does not happen: the event is late, repeated or out of turn, and
// whoever heard it decides which.
type table[S, E comparable] map[S]map[E]S

// next returns the state after an event, and whether there is one.
func (t table[S, E]) next(state S, event E) (S, bool) {
	after, ok := t[state][event]
	return after, ok
}
