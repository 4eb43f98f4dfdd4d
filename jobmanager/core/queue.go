package core

import "github.com/superstep-ml/superstep/internal/wire"

// queue counts, for each platform, the jobs that wait in front of the job that is being
// scheduled. Jobs for any platform are counted under anyPlatform.
type queue struct {
	held map[wire.Platform]int
}

// join counts a waiting job whose request has platform p.
func (q *queue) join(p wire.Platform) {
	if q.held == nil {
		q.held = make(map[wire.Platform]int)
	}
	q.held[p]++
}

// before returns how many of the counted jobs compete for slots with a job of platform p.
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

// place chooses slots for r in the same way as Place, but only slots for which no job in
// front waits. before must be q.before(r.Platform). Jobs for different platforms do not compete. So a
// job for any platform can get slots of a platform for which no job in front waits.
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
