package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// workerSender writes the messages of a worker from one goroutine, which also sends heartbeats.
// No other goroutine writes to the pipe. If the pipe is full, only callers of send block, and
// only until their context ends.
type workerSender struct {
	frames   *wire.Writer[wire.FromWorker]
	beat     time.Duration
	bulk     chan *wire.FromWorker
	messages chan *wire.FromWorker
	closing  chan struct{} // closed by close, after which no messages are sent
	written  chan struct{} // closed when all messages are written
	broken   func(error)   // called when the pipe is broken
	unsent   func(error)   // called when a message cannot be written although the pipe works
}

// maxMessages is the number of messages that may wait to be written. Whoever posts another one waits.
const maxMessages = 16

// newWorkerSender returns a sender and begins to send heartbeats. It calls the functions broken
// and unsent from its own goroutine.
func newWorkerSender(frames *wire.Writer[wire.FromWorker], beat time.Duration, broken, unsent func(error)) *workerSender {
	v := &workerSender{
		frames: frames, beat: beat, broken: broken, unsent: unsent,
		bulk: make(chan *wire.FromWorker), messages: make(chan *wire.FromWorker, maxMessages),
		closing: make(chan struct{}), written: make(chan struct{}),
	}
	go v.loop()
	return v
}

// send sends bulk data: collected rows, output or progress. It waits until the message can be
// written, which slows down a worker whose client reads slowly. Data that was sent before a call
// of post arrives before the message of that call.
func (v *workerSender) send(ctx context.Context, m *wire.FromWorker) error {
	select {
	case v.bulk <- m:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-v.closing:
		return errors.New("the worker has sent its last message")
	}
}

// post sends a message about the worker's state without waiting.
func (v *workerSender) post(m *wire.FromWorker) { v.messages <- m }

// close waits until all messages are written, but at most timeout, as the task manager may not
// be reading.
func (v *workerSender) close(timeout time.Duration) error {
	close(v.closing)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-v.written:
		return nil
	case <-timer.C:
		return fmt.Errorf("the task manager did not read the worker's last message within %v", timeout)
	}
}

func (v *workerSender) loop() {
	defer close(v.written)
	tick := time.NewTicker(v.beat)
	defer tick.Stop()
	for {
		var m *wire.FromWorker
		select {
		case m = <-v.messages:
		case m = <-v.bulk:
		case <-tick.C:
			m = &wire.FromWorker{Beat: &wire.Beat{}}
		case <-v.closing:
			for {
				select {
				case m := <-v.messages:
					if !v.write(m) {
						return
					}
				default:
					return
				}
			}
		}
		if !v.write(m) {
			return
		}
	}
}

// write writes one message. It returns false if the pipe is broken. After an error it writes
// another frame to find out whether the pipe still works.
func (v *workerSender) write(m *wire.FromWorker) bool {
	err := v.frames.Write(m)
	if err == nil {
		return true
	}
	if broken := v.frames.Write(&wire.FromWorker{Beat: &wire.Beat{}}); broken != nil {
		v.broken(broken)
		return false
	}
	v.unsent(err)
	return true
}
