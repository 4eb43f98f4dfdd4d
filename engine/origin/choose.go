package origin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/internal/wire"
)

// Choose adds the queues that continue from memory to from, the origin from which the other queues
// continue; nil means that they begin at superstep 1. known reports whether the job has a queue. A queue
// whose states are both in memory and in a checkpoint continues from the newer one. Choose may modify
// from, and returns it or, if it was nil, a new one.
func Choose(choices []copies.Choice, known func(queue string) bool, from *wire.Origin) *wire.Origin {
	for _, choice := range choices {
		if !known(choice.Queue) {
			continue
		}
		q := wire.OriginQueue{Name: choice.Queue, Superstep: choice.Superstep, Ended: choice.Ended, InMemory: true}
		if from == nil {
			from = &wire.Origin{}
		}
		i := slices.IndexFunc(from.Queues, func(o wire.OriginQueue) bool { return o.Name == q.Name })
		switch {
		case i < 0:
			from.Queues = append(from.Queues, q)
		case q.Superstep > from.Queues[i].Superstep || q.Ended && !from.Queues[i].Ended:
			from.Queues[i] = q
		}
	}
	return from
}

// Chosen returns those of the choices from which queues continue by an origin, and the reports of queues that
// have ended. It is an error if there is no choice for a queue that continues from memory: other workers may
// continue it.
func Chosen(choices []copies.Choice, from *wire.Origin) (of []copies.Choice, err error) {
	if from == nil {
		return nil, nil
	}
	for _, q := range from.Queues {
		if i := slices.IndexFunc(choices, func(c copies.Choice) bool { return c.State == ReportOf(q.Name) }); i >= 0 && q.Ended {
			of = append(of, choices[i])
		}
		if !q.InMemory {
			continue
		}
		i := slices.IndexFunc(choices, func(c copies.Choice) bool {
			return c.Queue == q.Name && c.Superstep == q.Superstep && c.Ended == q.Ended
		})
		if i < 0 {
			return nil, fmt.Errorf("queue %q continues after superstep %d from memory, and the worker was not told who has that state", q.Name, q.Superstep)
		}
		of = append(of, choices[i])
	}
	return of, nil
}

// Running returns the queues that continue with a superstep by an origin. The others have ended, or begin at
// superstep 1.
func Running(from *wire.Origin) (queues []string) {
	if from == nil {
		return nil
	}
	for _, q := range from.Queues {
		if !q.Ended {
			queues = append(queues, q.Name)
		}
	}
	return queues
}

// ReportPrefix begins the name by which the report of a queue that has ended is among the states of queues.
// No queue has such a name.
const ReportPrefix = "report\x00"

// ReportOf identifies the report of a queue that has ended.
func ReportOf(queue string) copies.State {
	return copies.State{Queue: ReportPrefix + queue, Superstep: 1, Ended: true, Of: 1}
}

// IsReport reports whether the name is that of a report.
func IsReport(queue string) bool { return strings.HasPrefix(queue, ReportPrefix) }
