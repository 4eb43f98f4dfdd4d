package simulation

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// world is one schedule: everything that happens to a cluster, in virtual time and in one goroutine.
// All that is random comes from draw, so that a seed always gives the same schedule.
type world struct {
	seed uint64
	draw *rand.Rand
	now  time.Duration

	agenda   agenda
	number   uint64 // of the last entry of the agenda
	steps    int    // entries that were carried out
	standing int    // entries that were carried out at the current time

	plan      schedule
	net       network
	manager   *managerHost
	hosts     []*host // the machines of task managers
	clients   []*client
	byID      map[jobID]*work
	addresses map[string]*worker // by the address that they have said
	groups    []*group           // attempts whose workers may be connected
	watching  bool               // the silence of workers is being watched
	fibers    []*fiber
	incidents []incident // faults so far
	points    map[string]int
	quiet     bool           // no further faults
	marks     map[string]int // how often something happened that schedules are meant to reach

	tracing bool
	trace   []string
	broken  string // the first invariant that was violated
}

// entry is something that happens at a time. Entries of the same time happen in the order in which
// they were made.
type entry struct {
	at     time.Duration
	number uint64
	do     func()
}

// agenda is a binary heap of entries, the next one first.
type agenda []entry

func (a agenda) before(i, k int) bool {
	return a[i].at < a[k].at || a[i].at == a[k].at && a[i].number < a[k].number
}

func (a *agenda) push(e entry) {
	h := append(*a, e)
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.before(i, up) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	*a = h
}

func (a *agenda) pop() entry {
	h := *a
	first := h[0]
	last := len(h) - 1
	h[0], h[last] = h[last], entry{}
	h = h[:last]
	for i := 0; ; {
		next := 2*i + 1
		if next >= len(h) {
			break
		}
		if next+1 < len(h) && h.before(next+1, next) {
			next++
		}
		if !h.before(next, i) {
			break
		}
		h[i], h[next] = h[next], h[i]
		i = next
	}
	*a = h
	return first
}

// after lets something happen after a time.
func (w *world) after(d time.Duration, do func()) {
	w.number++
	w.agenda.push(entry{w.now + max(0, d), w.number, do})
}

// run lets everything happen until a time, or until done or a violation.
func (w *world) run(until time.Duration, done func() bool) {
	for len(w.agenda) > 0 && w.broken == "" && !done() {
		if w.agenda[0].at > until {
			break
		}
		e := w.agenda.pop()
		if w.standing++; e.at > w.now {
			w.standing = 0
		}
		w.now = e.at
		w.steps++
		w.carryOutEntry(e)
		if w.standing > maxStanding {
			w.violated("time stands still")
		}
	}
	w.now = max(w.now, min(until, w.now))
}

// maxStanding is how many entries a moment may have.
const maxStanding = 100_000

// carryOutEntry carries out an entry. A panic of the code under test is a violation.
func (w *world) carryOutEntry(e entry) {
	defer func() {
		if p := recover(); p != nil {
			w.violated("panic: %v\n%s", p, debug.Stack())
		}
	}()
	e.do()
}

// close ends all code that waits.
func (w *world) close() {
	for _, f := range w.fibers {
		f.end()
	}
}

// violated says that an invariant does not hold. The first one counts.
func (w *world) violated(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf("at %.3fs: ", w.now.Seconds()) + fmt.Sprintf(format, args...)
		w.say("VIOLATED: %s", w.broken)
	}
}

// say adds a line to the trace, if there is one.
func (w *world) say(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%9.3f  ", w.now.Seconds())+fmt.Sprintf(format, args...))
	}
}

// between draws a time.
func (w *world) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(w.draw.Int64N(int64(hi-lo)+1))
}

// chance is true with a probability of one in n.
func (w *world) chance(n int) bool { return w.draw.IntN(n) == 0 }
