package core

import "github.com/superstep-ml/superstep/internal/wire"

// queue is who waits for slots before the job at hand: how many for those of each
// platform, and how many for those of any.
type queue struct {
	held map[wire.Platform]int
}

// join adds a job that waits.
func (q *queue) join(p wire.Platform) {
	if q.held == nil {
		q.held = make(map[wire.Platform]int)
	}
	q.held[p]++
}

// before returns how many jobs wait for slots that one of this platform could get.
func (q *queue) before(p wire.Platform) int {
	if p != anyPlatform {
		return q.held[p] + q.held[anyPlatform]
	}
	n := 0
	for _, k := range q.held {
		n += k
	}
	return n
}

// place places a job on the slots for which nobody waits who came before. A job for a
// platform of which there is no task manager holds up nobody else: slots of other
// platforms are not what it waits for.
func (q *queue) place(offers []Offer, r Request, before int) ([]Share, *Shortage) {
	if before == 0 {
		return Place(offers, r)
	}
	if r.Platform == anyPlatform && q.held[anyPlatform] == 0 {
		open := make([]Offer, len(offers))
		for i, o := range offers {
			open[i] = o
			if q.held[o.Platform] > 0 {
				open[i].Free = 0
			}
		}
		if shares, short := Place(open, r); short == nil {
			return shares, nil
		}
	}
	short, _ := survey(offers, r)
	short.Before = before
	return nil, short
}
