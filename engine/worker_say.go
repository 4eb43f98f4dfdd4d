package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// workerVoice writes what a worker has to say, from one goroutine, which beats all
// along. Nobody else writes, so that a pipe that is full holds up those who send in
// bulk, and only until their context ends.
type workerVoice struct {
	frames *wire.Writer[wire.FromWorker]
	beat   time.Duration
	bulk   chan *wire.FromWorker
	words  chan *wire.FromWorker
	hush   chan struct{} // closed when nothing more will be said
	hushed chan struct{} // closed when all is said
	broken func(error)   // told that the pipe is of no use
	unsaid func(error)   // told that a word cannot be said, though the pipe is well
}

// maxWords is more than a worker says in its life, apart from bulk and beats.
const maxWords = 16

// newWorkerVoice begins to beat. The functions are called from its goroutine.
func newWorkerVoice(frames *wire.Writer[wire.FromWorker], beat time.Duration, broken, unsaid func(error)) *workerVoice {
	v := &workerVoice{
		frames: frames, beat: beat, broken: broken, unsaid: unsaid,
		bulk: make(chan *wire.FromWorker), words: make(chan *wire.FromWorker, maxWords),
		hush: make(chan struct{}), hushed: make(chan struct{}),
	}
	go v.loop()
	return v
}

// send says what comes in bulk: collected rows, output, progress. It waits until the
// pipe takes it, which is what slows a worker down whose client reads slowly. What is
// sent before a word is said arrives before it.
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

// say says a word of the worker's life, and does not wait.
func (v *workerVoice) say(m *wire.FromWorker) { v.words <- m }

// close waits until all words are said, but not for ever: nobody may be reading.
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

// write says one thing. It returns false when nothing can be said any more. A writer
// whose stream goes on after an error takes the next frame, which is how the two
// kinds of errors are told apart.
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
