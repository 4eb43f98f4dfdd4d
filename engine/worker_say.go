package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// workerVoice writes the messages of a worker from one goroutine, which also sends heartbeats.
// Nobody else writes, so that a full pipe blocks only senders in bulk, and those only until
// their context ends.
type workerVoice struct {
	frames *wire.Writer[wire.FromWorker]
	beat   time.Duration
	bulk   chan *wire.FromWorker
	words  chan *wire.FromWorker
	hush   chan struct{} // closed when no more messages will come
	hushed chan struct{} // closed when all messages are written
	broken func(error)   // called when the pipe is broken
	unsaid func(error)   // called when a message cannot be written, though the pipe works
}

// maxWords is more messages than a worker ever sends, apart from bulk and heartbeats.
const maxWords = 16

// newWorkerVoice begins to send heartbeats. The functions are called from its goroutine.
func newWorkerVoice(frames *wire.Writer[wire.FromWorker], beat time.Duration, broken, unsaid func(error)) *workerVoice {
	v := &workerVoice{
		frames: frames, beat: beat, broken: broken, unsaid: unsaid,
		bulk: make(chan *wire.FromWorker), words: make(chan *wire.FromWorker, maxWords),
		hush: make(chan struct{}), hushed: make(chan struct{}),
	}
	go v.loop()
	return v
}

// send sends bulk: collected rows, output, progress. It waits until the pipe takes it, which
// slows down a worker whose client reads slowly. Bulk that is sent before a call of say arrives
// before that message.
func (v *workerVoice) send(ctx context.Context, m *wire.FromWorker) error {
	select {
	case v.bulk <- m:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-v.hush:
		return errors.New("the worker has said its last word")
	}
}

// say sends a message about the worker's state, and does not wait.
func (v *workerVoice) say(m *wire.FromWorker) { v.words <- m }

// close waits until all messages are written, but at most patience, as nobody may be reading.
func (v *workerVoice) close(patience time.Duration) error {
	close(v.hush)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-v.hushed:
		return nil
	case <-timer.C:
		return fmt.Errorf("the task manager did not read the worker's last word within %v", patience)
	}
}

func (v *workerVoice) loop() {
	defer close(v.hushed)
	tick := time.NewTicker(v.beat)
	defer tick.Stop()
	for {
		var m *wire.FromWorker
		select {
		case m = <-v.words:
		case m = <-v.bulk:
		case <-tick.C:
			m = &wire.FromWorker{Beat: &wire.Beat{}}
		case <-v.hush:
			for {
				select {
				case m := <-v.words:
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

// write writes one message. It returns false when the pipe is broken. After an error it writes
// another frame to find out whether the pipe still works.
func (v *workerVoice) write(m *wire.FromWorker) bool {
	err := v.frames.Write(m)
	if err == nil {
		return true
	}
	if broken := v.frames.Write(&wire.FromWorker{Beat: &wire.Beat{}}); broken != nil {
		v.broken(broken)
		return false
	}
	v.unsaid(err)
	return true
}
