package copies

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/peerlink"
)

// Fetch returns the pieces of a state that this worker needs, from the Store or from other workers.
// needed says for each piece whether it is needed; nil means that all are. The others are nil. The
// caller must not modify the pieces. A worker that does not answer is asked again until ctx ends or
// the Exchange closes. The error names the worker, the queue and the superstep.
func (x *Exchange) Fetch(ctx context.Context, c Choice, needed []bool) ([][]byte, error) {
	if err := c.checkHolders(x.cfg.Workers); err != nil {
		return nil, fmt.Errorf("fetch the state of a queue: %w", err)
	}
	if needed != nil && len(needed) != c.Of {
		return nil, fmt.Errorf("fetch the state of %s: %d pieces, where it has %d", c.State, len(needed), c.Of)
	}
	f := &fetch{x: x, Choice: c, pieces: make([][]byte, c.Of), without: make(map[int]error)}
	for i := range c.Of {
		if needed != nil && !needed[i] {
			continue
		}
		if f.pieces[i] = x.cfg.Store.Piece(c.State, i); f.pieces[i] == nil {
			f.rest = append(f.rest, i)
		}
	}
	if len(f.rest) == 0 {
		return f.pieces, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(x.ctx, func() { cancel(errClosed) })()
	if !x.enter() {
		return nil, fmt.Errorf("fetch the state of %s: %w", c.State, errClosed)
	}
	defer x.work.Done()
	if _, err := peerlink.Retry(ctx, f.round); err != nil {
		return nil, err
	}
	return f.pieces, nil
}

// Inherit makes this worker hold pieces of Config.From that only workers hold which leave, so that the states
// are not lost with them. The other workers that share states hold the rest of these pieces. Until all have
// called Inherit, these states are not Settled. It fails as Fetch does.
func (x *Exchange) Inherit(ctx context.Context) error {
	for _, c := range x.cfg.From {
		if !x.inheritsAny(c) {
			continue
		}
		pieces, err := x.Fetch(ctx, c, c.Inherits(x.cfg.Worker, x.cfg.Sharing))
		if err != nil {
			return err
		}
		for number, data := range pieces {
			if data == nil {
				continue
			}
			if err := x.cfg.Store.Put(c.State, number, data); err != nil {
				return fmt.Errorf("keep a piece of the state of %s: %w", c.State, err)
			}
		}
		x.mu.Lock()
		x.core.Repair([]Choice{c})
		x.mu.Unlock()
	}
	return nil
}

// inheritsAny reports whether this worker inherits a piece of a state.
func (x *Exchange) inheritsAny(c Choice) bool {
	return slices.Contains(c.Inherits(x.cfg.Worker, x.cfg.Sharing), true)
}

// enter makes Close wait until work.Done is called. It returns false if the Exchange is closed.
func (x *Exchange) enter() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		x.work.Add(1)
	}
	return !x.closed
}

// fetch is a fetch that is going on.
type fetch struct {
	x *Exchange
	Choice
	pieces  [][]byte
	rest    []int         // pieces that are still needed
	rounds  int           // number of calls of round
	without map[int]error // workers that do not give what they should, and why; they are not asked again
}

// round asks workers once for the pieces that are still needed. If it returns an error, some are
// missing. The error is final if no holder of a piece is left to be asked.
func (f *fetch) round(ctx context.Context) (none struct{}, err error) {
	lists := make(map[int][]int) // pieces to ask a worker for
	for _, i := range f.rest {
		w, err := f.holder(i)
		if err != nil {
			return none, peerlink.Final(err)
		}
		lists[w] = append(lists[w], i)
	}
	f.rounds++
	var mu sync.Mutex
	var errs []error
	var asking sync.WaitGroup
	for w, list := range lists {
		asking.Go(func() {
			err := f.ask(ctx, w, list)
			if err == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			err = fmt.Errorf("fetch the state of %s from worker %d (%s): %w", f.State, w, f.x.cfg.Where(w), err)
			if errors.Is(err, errMissing) || errors.Is(err, peerlink.ErrRefused) && peerlink.IsFinal(err) {
				f.without[w] = err
			}
			errs = append(errs, passing{err})
		})
	}
	asking.Wait()
	f.rest = slices.DeleteFunc(f.rest, func(i int) bool { return f.pieces[i] != nil })
	if len(f.rest) == 0 {
		return none, nil
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return none, errs[0]
}

// holder returns the worker to ask for a piece: in each round the next one of its holders that may
// have it.
func (f *fetch) holder(piece int) (int, error) {
	of := f.Holders[piece]
	for k := range of {
		w := of[(f.rounds+k)%len(of)]
		if w != f.x.cfg.Worker && f.without[w] == nil {
			return w, nil
		}
	}
	for _, w := range of {
		if err := f.without[w]; err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("fetch the state of %s: worker %d should hold piece %d itself: %w", f.State, f.x.cfg.Worker, piece, errMissing)
}

// errMissing says that a worker does not hold a piece that it should hold.
var errMissing = errors.New("it does not hold what it said it holds")

// ask asks a worker for pieces.
func (f *fetch) ask(ctx context.Context, w int, list []int) error {
	nc, err := f.x.dial(ctx, w, channelFetch)
	if err != nil {
		return err
	}
	defer shut(nc)
	defer context.AfterFunc(ctx, func() { shut(nc) })()
	err = f.receive(nc, list)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// receive sends a request over a connection, and receives the pieces.
func (f *fetch) receive(nc net.Conn, list []int) error {
	patience := f.x.cfg.Patience
	var request []byte
	for _, i := range list {
		request = binary.AppendUvarint(request, uint64(i))
	}
	w := newFrameWriter(nc, func() { nc.SetWriteDeadline(time.Now().Add(patience)) })
	if err := w.write(Message{kind: kindFetch, State: f.State}, request, checksum.Of(request)); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	soon := func() { nc.SetReadDeadline(time.Now().Add(patience)) }
	r := newFrameReader(nc, soon)
	for _, i := range list {
		soon()
		h, err := r.next()
		switch {
		case err != nil:
			return fmt.Errorf("piece %d: %w", i, err)
		case h.State != f.State || h.piece != i || h.kind != kindPiece && h.kind != kindMissing:
			return peerlink.Violation("%v of piece %d of %s, where piece %d is due", h.kind, h.piece, h.State, i)
		case h.kind == kindMissing:
			return fmt.Errorf("piece %d: %w", i, errMissing)
		}
		piece, _, err := r.body([]byte{}, h.length)
		if err != nil {
			return fmt.Errorf("piece %d: %w", i, err)
		}
		f.pieces[i] = piece
	}
	return nil
}
