package core

import "github.com/superstep-ml/superstep/internal/wire"

// queue counts the jobs that wait for slots before the current one, by platform; anyPlatform
// has its own count.
type queue struct {
	held map[wire.Platform]int
}

// join adds a waiting job.
func (q *queue) join(p wire.Platform) {
	if q.held == nil {
		q.held = make(map[wire.Platform]int)
	}
	q.held[p]++
}

// before returns how many waiting jobs compete with a job of platform p for slots.
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

// place places a job on slots for which no earlier job waits. A job for a platform without task
// managers holds up no other, as it does not wait for slots of other platforms.
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
