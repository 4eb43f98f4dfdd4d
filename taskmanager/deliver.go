package taskmanager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/taskmanager/core"
)

// deliverer sends a worker's rows, text and log lines to the job manager, on a stream that it
// opens when there is something to send. It accepts a piece of rows or text only after the
// previous piece was sent. So if the job manager is slow, the worker's pipe fills up and the
// worker waits. Log lines wait in the bounded buffer of output, which drops lines when it is
// full.
//
// The worker's events are sent on another stream. An event that must arrive after all earlier
// deliveries waits for a flush. The flush is answered when the job manager has confirmed these
// deliveries. If a connection breaks and rows may have been lost, the worker fails, because
// nobody knows which rows arrived. It does not fail if log lines are lost.
type deliverer struct {
	ref    wire.WorkerRef
	client *wire.Client
	out    *output

	patience time.Duration // how long lost waits for a broken connection to work again

	bulk    chan *wire.Delivery
	flushes chan chan error
	broken  chan error // holds the reason why rows were lost

	mu       sync.Mutex
	cancel   context.CancelFunc // cancels the stream
	unwanted bool               // whether rows and text are dropped instead of sent

	// The following fields are used only by the goroutine of run.
	stream  stream
	stalled bool  // the job manager did not accept the last log lines
	rows    bool  // the stream has unconfirmed rows or text
	refused error // the error with which the job manager refuses deliveries of this worker, or nil
	retry   *core.Backoff
}

// stream is the client's side of a stream of deliveries.
type stream interface {
	Send(*wire.Delivery) error
	CloseAndRecv() (*wire.Delivered, error)
}

// logTimeout bounds how long a worker that has ended waits until its log lines are delivered.
const logTimeout = 3 * time.Second

func newDeliverer(ref wire.WorkerRef, client *wire.Client, out *output, seed uint64) *deliverer {
	return &deliverer{
		ref: ref, client: client, out: out,
		patience: reconnectTimeout,
		bulk:     make(chan *wire.Delivery), flushes: make(chan chan error), broken: make(chan error, 1),
		retry: core.NewBackoff(seed),
	}
}

// run sends rows, text and log lines and answers flushes until the context is done.
func (d *deliverer) run(ctx context.Context) {
	defer d.closeStream()
	var later <-chan time.Time
	for {
		select {
		case piece := <-d.bulk:
			d.deliver(ctx, piece)
		case <-d.out.more:
			if later != nil {
				continue
			}
		case <-later:
			later = nil
		case answer := <-d.flushes:
			answer <- d.confirm(ctx)
			continue
		case <-ctx.Done():
			return
		}
		if later == nil && !d.deliverLog(ctx) {
			later = time.After(d.retry.Wait())
		}
	}
}

// discard makes the deliverer drop all rows and text from now on, including the piece that is
// being sent.
func (d *deliverer) discard() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unwanted = true
	if d.cancel != nil {
		d.cancel()
	}
}

func (d *deliverer) discarded() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unwanted
}

// deliver sends a piece of rows or text. It tries again while there is no connection, and gives
// up if rows or text may have been lost.
func (d *deliverer) deliver(ctx context.Context, piece *wire.Delivery) {
	for ctx.Err() == nil && !d.discarded() {
		err := d.open(ctx)
		if err == nil && !d.discarded() { // checked again: discard cancels only an open stream
			d.rows = true // from here on, rows or text on this stream may be lost although send succeeded
			err = d.send(piece)
		}
		if err == nil {
			return
		}
		lost := d.rows
		d.fail(err)
		if lost || d.refused != nil {
			d.tellLost(ctx, err)
			return
		}
		select {
		case <-time.After(d.retry.Wait()):
		case <-ctx.Done():
		}
	}
}

// deliverLog sends all waiting log lines. It returns false if sending failed and the caller
// should try again later. Lines that were being sent are then lost.
func (d *deliverer) deliverLog(ctx context.Context) bool {
	for ctx.Err() == nil {
		if d.refused != nil {
			d.out.take()
			return true
		}
		if err := d.open(ctx); err != nil {
			d.fail(err)
			return d.refused != nil
		}
		lines := d.out.take()
		if lines == nil {
			return true
		}
		if err := d.sendLog(lines); err != nil {
			rows := d.rows
			d.fail(err)
			if rows {
				d.tellLost(ctx, err)
			}
			d.stalled = true
			return d.refused != nil
		}
		d.stalled = false
	}
	return true
}

// sendLog sends log lines. If the stream has no unconfirmed rows or text, sendLog waits at most
// logTimeout for the job manager to accept the lines, so that log lines do not delay the
// worker.
func (d *deliverer) sendLog(lines []byte) error {
	if !d.rows {
		stop := time.AfterFunc(logTimeout, d.cancelStream)
		defer stop.Stop()
	}
	return d.send(&wire.Delivery{Log: lines})
}

// finish requests a flush, which sends all waiting log lines and confirms all deliveries, and
// waits for the answer. It waits at most logTimeout. It is called once, and not by the
// goroutine of run.
func (d *deliverer) finish() {
	enough := time.NewTimer(logTimeout)
	defer enough.Stop()
	answer := make(chan error, 1)
	select {
	case d.flushes <- answer:
	case <-enough.C:
		return
	}
	select {
	case <-answer:
	case <-enough.C:
	}
}

// open opens the stream if none is open. It fails if the job manager refuses deliveries of this
// worker.
func (d *deliverer) open(ctx context.Context) error {
	if d.refused != nil {
		return d.refused
	}
	if d.stream != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	s, err := d.client.Deliver(ctx)
	if err != nil {
		cancel()
		return err
	}
	d.mu.Lock()
	d.cancel = cancel
	d.mu.Unlock()
	d.stream = s
	if err := d.send(&wire.Delivery{Worker: &d.ref}); err != nil {
		return err
	}
	d.retry.Reset()
	return nil
}

// send sends piece on the stream. If the job manager has ended the stream, the error says why.
func (d *deliverer) send(piece *wire.Delivery) error {
	err := d.stream.Send(piece)
	if err == io.EOF {
		if _, err = d.stream.CloseAndRecv(); err == nil {
			err = errors.New("the job manager ended the delivery too early")
		}
	}
	return err
}

// fail closes a stream that failed with err, and records err if the job manager would refuse
// another stream too.
func (d *deliverer) fail(err error) {
	d.closeStream()
	switch wire.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded, codes.Unknown, codes.Internal:
	default:
		d.refused = err // the job manager has refused the stream, and would refuse another stream
	}
}

// tellLost returns the error that rows or text were lost because of err. Unless discard was
// called, it also sends the error to broken.
func (d *deliverer) tellLost(ctx context.Context, err error) error {
	if d.discarded() {
		return fmt.Errorf(undelivered+"%w", err)
	}
	err = d.lost(ctx, err)
	select {
	case d.broken <- err:
	default: // broken has an error already
	}
	return err
}

// reconnectTimeout bounds how long lost waits for a broken connection to work again. The job
// manager considers a task manager lost after the same time.
const reconnectTimeout = 2 * time.Second

const undelivered = "rows or text for the client could not be brought to the job manager: "

// lost returns an error that says why rows or text were lost. If the connection broke, lost
// waits up to d.patience for the connection to work again, and the error says whether it does.
func (d *deliverer) lost(ctx context.Context, err error) error {
	if wire.Code(err) != codes.Unavailable {
		return fmt.Errorf(undelivered+"%w", err)
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	back := ""
	for ctx.Err() == nil && !d.discarded() {
		if _, err := d.client.Deliver(ctx); err == nil { // only tests the connection; cancel ends the stream
			back = fmt.Sprintf("; it was back %.1fs later", time.Since(begun).Seconds())
			break
		}
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
	if back == "" && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		back = fmt.Sprintf("; it was not back within %s", d.patience)
	}
	return fmt.Errorf(undelivered+"the connection to it broke while they were on their way (%w), and nobody knows which of them arrived%s", err, back)
}

// closeStream closes the stream without confirmation.
func (d *deliverer) closeStream() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
	d.stream, d.cancel, d.rows = nil, nil, false
}

// confirm sends the waiting log lines, closes the stream, and waits until the job manager has
// confirmed everything on it. It returns an error only if rows or text were lost.
func (d *deliverer) confirm(ctx context.Context) error {
	if !d.stalled && d.out.waits() {
		d.deliverLog(ctx)
	}
	if d.stream == nil {
		return nil
	}
	rows := d.rows
	if !rows {
		stop := time.AfterFunc(logTimeout, d.cancelStream)
		defer stop.Stop()
	}
	_, err := d.stream.CloseAndRecv()
	if err == nil {
		d.closeStream()
		return nil
	}
	d.fail(err)
	if rows {
		return d.tellLost(ctx, err)
	}
	return nil
}

func (d *deliverer) cancelStream() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}
