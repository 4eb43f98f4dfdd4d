package precopy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// Direct has processes execute orders, and returns their outcomes in the same order when all have answered, or when
// ctx ends. It may execute one in this process. An order takes no longer than its time.
func (n *Node) Direct(ctx context.Context, all []Order) []Outcome {
	result := make([]Outcome, len(all))
	if !n.enter() {
		for i := range all {
			result[i] = all[i].undone(errClosed)
		}
		return result
	}
	defer n.work.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	var sending sync.WaitGroup
	for i, o := range all {
		sending.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, o.Within)
			defer cancel()
			if o.To.Worker == n.cfg.Worker {
				result[i] = n.execute(ctx, o)
				return
			}
			var err error
			if result[i], err = n.send(ctx, o); err != nil {
				result[i] = o.undone(reason(ctx, err))
			}
		})
	}
	sending.Wait()
	return result
}

// undone returns the outcome of an order of which nothing is known to be done.
func (o Order) undone(why error) (out Outcome) {
	for _, t := range o.Takes {
		out.Left += len(t.Shards)
	}
	out.Because = clip(fmt.Sprintf("worker %d (%s): %v", o.To.Worker, o.To.Address, why))
	return out
}

var errLate = errors.New("the time for it is over")

// reason returns the error that says why something failed: the end of ctx if that was the cause.
func reason(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return errLate
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// send sends an order to another process, and waits for its outcome.
func (n *Node) send(ctx context.Context, o Order) (out Outcome, err error) {
	body, err := orders.Append(nil, o)
	if err != nil {
		return out, err
	}
	l, err := n.dial(ctx, o.To, channelOrder)
	if err != nil {
		return out, err
	}
	defer l.close()
	if err := l.w.send(kindOrder, body); err != nil {
		return out, err
	}
	l.r.step = func() { l.nc.SetReadDeadline(time.Time{}) } // until ctx ends
	k, body, err := l.r.next()
	if err == nil && k != kindOutcome {
		err = peerlink.Violation("%v, where an outcome is due", k)
	}
	if err != nil {
		return out, err
	}
	return decodeOutcome(body)
}

// obey executes the order that comes over a connection. If the connection ends, so does the execution.
func (n *Node) obey(l *line) error {
	k, body, err := l.r.next()
	if err == nil && k != kindOrder {
		err = peerlink.Violation("%v, where an order is due", k)
	}
	if err != nil {
		return err
	}
	o, err := decodeOrder(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(n.ctx, o.Within)
	defer cancel()
	var watching sync.WaitGroup
	watching.Go(func() {
		l.r.step = func() { l.nc.SetReadDeadline(time.Time{}) }
		_, _, _ = l.r.next() // nothing follows an order, so this is the end of the connection
		cancel()
	})
	defer watching.Wait()
	defer shut(l.nc)
	o.To.Worker = n.cfg.Worker
	out := n.execute(ctx, o)
	if body, err = outcomes.Append(nil, out); err != nil {
		return err
	}
	return l.w.send(kindOutcome, body)
}

// execute takes the shards of an order, from all workers at the same time. It ends the execution of the order before.
func (n *Node) execute(ctx context.Context, o Order) Outcome {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n.mu.Lock()
	if n.latest != nil {
		n.latest()
	}
	n.latest = cancel
	n.mu.Unlock()
	n.executing.Lock()
	defer n.executing.Unlock()
	if err := ctx.Err(); err != nil { // a later order may have been executed meanwhile, whose rows must stay
		return o.undone(reason(ctx, err))
	}
	wanted := make(map[string]map[int]bool)
	from := make(map[Process][]Take)
	for _, t := range o.Takes {
		if wanted[t.Queue] == nil {
			wanted[t.Queue] = make(map[int]bool)
		}
		for _, shard := range t.Shards {
			wanted[t.Queue][shard] = true
		}
		from[t.From] = append(from[t.From], t)
	}
	n.cfg.Rows.DropAhead(func(queue string, shard int) bool { return wanted[queue][shard] })
	var taking sync.WaitGroup
	tally := &tally{}
	for process, takes := range from {
		taking.Go(func() { n.takeFrom(ctx, process, takes, tally) })
	}
	taking.Wait()
	return tally.outcome()
}

// tally counts what is taken.
type tally struct {
	mu     sync.Mutex
	shards int
	bytes  int64
	left   int
	whys   map[string]int // how many shards are left for each reason
}

func (t *tally) took(bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shards, t.bytes = t.shards+1, t.bytes+bytes
}

func (t *tally) leave(shards int, why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.whys == nil {
		t.whys = make(map[string]int)
	}
	t.left += shards
	t.whys[why.Error()] += shards
}

// outcome returns the outcome, with the reason for which most shards are left.
func (t *tally) outcome() Outcome {
	o := Outcome{Shards: t.shards, Bytes: t.bytes, Left: t.left}
	for _, why := range slices.Sorted(maps.Keys(t.whys)) {
		if o.Because == "" || t.whys[why] > t.whys[o.Because] {
			o.Because = why
		}
	}
	o.Because = clip(o.Because)
	return o
}
