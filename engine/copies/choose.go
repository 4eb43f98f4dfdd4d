package copies

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Choice is a state of a queue from which a job continues.
type Choice struct {
	State
	// Holders[i] has the workers that hold piece i. They are asked for it in this order.
	Holders [][]int
}

// Choose returns the states from which a job continues, sorted by queue. held[w] says what worker w of
// the next attempt holds, which is nothing if it is new. For each queue, Choose takes the newest state of which each piece is held by a worker; a
// queue without such a state begins anew. The first holders of the pieces are spread over the
// workers. Choose is a pure function, so all workers that know the same choose the same.
func Choose(held [][]Held) []Choice {
	type holding struct {
		worker int
		pieces []int
	}
	states := make(map[State][]holding)
	for w, list := range held {
		for _, h := range list {
			states[h.State] = append(states[h.State], holding{w, h.Pieces})
		}
	}
	newestFirst := slices.SortedFunc(maps.Keys(states), func(s, t State) int {
		return cmp.Or(cmp.Compare(s.Queue, t.Queue), t.compare(s), cmp.Compare(t.Of, s.Of))
	})
	var choices []Choice
	for _, s := range newestFirst {
		if n := len(choices); n > 0 && choices[n-1].Queue == s.Queue || s.check() != nil {
			continue
		}
		total := 0
		for _, h := range states[s] {
			total += len(h.pieces)
		}
		if total < s.Of { // before memory is taken for pieces that nobody holds
			continue
		}
		holders := make([][]int, s.Of)
		for _, h := range states[s] {
			for _, i := range h.pieces {
				if s.checkPiece(i, 0) == nil && !slices.Contains(holders[i], h.worker) {
					holders[i] = append(holders[i], h.worker)
				}
			}
		}
		if slices.ContainsFunc(holders, func(workers []int) bool { return len(workers) == 0 }) {
			continue
		}
		balance(holders, len(held))
		choices = append(choices, Choice{s, holders})
	}
	return choices
}

// balance changes the order of the holders of each piece, so that the first holders are spread over
// the workers: piece after piece, it takes the holder that is first for the fewest pieces before.
// The holders of a piece are in ascending order, and remain in it but for a rotation.
func balance(holders [][]int, workers int) {
	first := make([]int, workers) // number of pieces of which a worker is the first holder
	for _, of := range holders {
		at := 0
		for i, w := range of {
			if first[w] < first[of[at]] {
				at = i
			}
		}
		first[of[at]]++
		rotated := slices.Concat(of[at:], of[:at])
		copy(of, rotated)
	}
}

// checkHolders returns an error unless each piece of the choice has holders among the workers.
func (c Choice) checkHolders(workers int) error {
	if err := c.check(); err != nil {
		return err
	}
	if len(c.Holders) != c.Of {
		return fmt.Errorf("%s: %d pieces have holders, of %d", c.State, len(c.Holders), c.Of)
	}
	for i, of := range c.Holders {
		if len(of) == 0 || slices.Min(of) < 0 || slices.Max(of) >= workers {
			return fmt.Errorf("%s: piece %d is held by %v, of %d workers", c.State, i, of, workers)
		}
	}
	return nil
}

// HeldBelow returns the choices with the holders that are below a number. A piece that none of these holds
// has the worker that inherits it instead.
func HeldBelow(all []Choice, n int) []Choice {
	below := slices.Clone(all)
	for i := range below {
		holders := make([][]int, len(all[i].Holders))
		for piece, of := range all[i].Holders {
			holders[piece] = slices.DeleteFunc(slices.Clone(of), func(w int) bool { return w >= n })
			if len(holders[piece]) == 0 {
				holders[piece] = []int{piece % n}
			}
		}
		below[i].Holders = holders
	}
	return below
}

// Inherits says for each piece of the choice whether a worker, which is below sharing, inherits it: because
// only workers hold it that leave when the others have what they need.
func (c Choice) Inherits(worker, sharing int) []bool {
	pieces := make([]bool, len(c.Holders))
	for piece, of := range c.Holders {
		pieces[piece] = slices.Min(of) >= sharing && piece%sharing == worker
	}
	return pieces
}

// lack is a copy of a piece that is missing.
type lack struct{ piece, to int }

// lacks returns the copies that a worker must send, so that as many workers as in a state that the
// attempt itself shares hold each piece of the chosen state. The first holder of a piece sends it to
// the next workers that do not hold it.
func (c Choice) lacks(worker, workers, copies int) (missing []lack) {
	for i, of := range c.Holders {
		if of[0] != worker {
			continue
		}
		wanted := min(1+copies, workers) - len(of)
		for to := (worker + 1) % workers; wanted > 0; to = (to + 1) % workers {
			if !slices.Contains(of, to) {
				missing = append(missing, lack{i, to})
				wanted--
			}
		}
	}
	return missing
}
