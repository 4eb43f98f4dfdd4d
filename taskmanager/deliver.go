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
)

// deliverer sends a worker's rows, text and log to the job manager, on a stream that is opened
// when there is something to send. It takes the next piece of rows or text when the one before
// has been sent: a slow job manager fills the worker's pipe, and makes the worker wait. Log
// lines wait in their bounded buffer and are dropped there.
//
// The worker's events take another stream. A flush keeps their order with the deliveries: it is
// answered when the job manager has confirmed everything delivered before. A worker whose rows
// may have been lost with a connection fails, since nobody knows which arrived. Lost log lines
// do not fail it.
type deliverer struct {
	ref    wire.WorkerRef
	client *wire.Client
	out    *output

	patience time.Duration // wait for a broken connection to be back

	bulk    chan *wire.Delivery
	flushes chan chan error
	broken  chan error // holds the reason why rows were lost

	mu       sync.Mutex
	cancel   context.CancelFunc // of the stream
	unwanted bool               // the rows are not wanted any more

	// Used only by the goroutine of run.
	stream  stream
	stalled bool  // the last log lines were not accepted
	rows    bool  // the stream has unconfirmed rows or text
	refused error // the job manager wants nothing of this worker
	retry   *backoff
}

// stream is a stream of deliveries.
type stream interface {
	Send(*wire.Delivery) error
	CloseAndRecv() (*wire.Delivered, error)
}

// logTimeout bounds how long the end of a worker waits for its log lines.
const logTimeout = 3 * time.Second

func newDeliverer(ref wire.WorkerRef, client *wire.Client, out *output, seed uint64) *deliverer {
	return &deliverer{
		ref: ref, client: client, out: out,
		patience: reconnectTimeout,
		bulk:     make(chan *wire.Delivery), flushes: make(chan chan error), broken: make(chan error, 1),
		retry: newBackoff(seed),
	}
}

// run delivers until the context is done.
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
			later = time.After(d.retry.wait())
		}
	}
}

// discard drops the rows and text, including those being sent.
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

// deliver sends rows or text, and tries again while there is no connection. It gives up when
// they may have been lost.
func (d *deliverer) deliver(ctx context.Context, piece *wire.Delivery) {
	for ctx.Err() == nil && !d.discarded() {
		err := d.open(ctx)
		if err == nil && !d.discarded() { // checked again, as discard ends only a stream that is open already
			d.rows = true // from here on they may be lost unnoticed
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
		case <-time.After(d.retry.wait()):
		case <-ctx.Done():
		}
	}
}

// deliverLog sends all lines that wait. It reports false if sending failed but later lines are
// worth another try; the lines being sent are lost.
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

// sendLog sends lines. On a stream that carries nothing else it does not wait for a job manager
// that accepts none, as the worker must not be held up.
func (d *deliverer) sendLog(lines []byte) error {
	if !d.rows {
		stop := time.AfterFunc(logTimeout, d.cancelStream)
		defer stop.Stop()
	}
	return d.send(&wire.Delivery{Log: lines})
}

// finish sends the rest of the log and waits for the confirmation of everything, up to a time
// limit. It is called once, by another goroutine.
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

// open opens the stream if there is none.
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
	d.retry.reset()
	return nil
}

// send sends a piece. If the job manager has ended the stream, the error says why.
func (d *deliverer) send(piece *wire.Delivery) error {
	err := d.stream.Send(piece)
	if err == io.EOF {
		if _, err = d.stream.CloseAndRecv(); err == nil {
			err = errors.New("the job manager ended the delivery too early")
		}
	}
	return err
}

// fail closes a stream that failed.
func (d *deliverer) fail(err error) {
	d.closeStream()
	switch wire.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded, codes.Unknown, codes.Internal:
	default:
		d.refused = err // the job manager has answered, and would do so again
	}
}

// tellLost reports that rows or text were lost, if they are wanted, and returns the error.
func (d *deliverer) tellLost(ctx context.Context, err error) error {
	if d.discarded() {
		return fmt.Errorf(undelivered+"%w", err)
	}
	err = d.lost(ctx, err)
	select {
	case d.broken <- err:
	default: // it is known already
	}
	return err
}

// reconnectTimeout bounds the wait for a broken connection to be back. After that time, a job
// manager takes a task manager for lost.
const reconnectTimeout = 2 * time.Second

const undelivered = "rows or text for the client could not be brought to the job manager: "

// lost says why rows or text were lost and, where the connection broke, whether it is back.
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
		if _, err := d.client.Deliver(ctx); err == nil { // ended by cancel; nothing is sent on it
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

// confirm sends the lines that wait, and asks the job manager to confirm everything. An error
// says that rows were lost.
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
