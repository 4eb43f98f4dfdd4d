package taskmanager

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// child is the process of a worker, with the task manager's ends of its pipes and the goroutines that
// serve them. One goroutine at a time owns a child: it receives from the channels, sends to outgo, and
// calls the methods. It must receive the frames until there are no more, and close the child after the
// process has ended. The zero value is a child without a process: nothing ever comes from its channels.
type child struct {
	process Process
	pipes   pipes
	out     *output
	outEnd  chan struct{}       // closed when all output was read
	outgo   chan *wire.ToWorker // messages for the process
	unsent  chan error          // error of a message that could not be sent although the process still runs
	exits   chan ended          // receives how the process ended
	frames  chan frame          // frames of the process, and at last an error
	closing chan struct{}       // closed when nobody receives frames any more
	release func()              // releases the executable; nil before it is acquired
	tasks   sync.WaitGroup      // goroutines of the child
}

// maxOutgo bounds the messages that wait for a process. A worker never gets more messages other than
// requests for checkpoints, so that sending to outgo never blocks.
const maxOutgo = 8

// ended has the results of Process.Wait: how the process ended, and the error of waiting.
type ended struct {
	Exit
	err error
}

// newChild returns the child of a process that was started with the given pipes. release releases the
// executable of the process.
func newChild(process Process, p pipes, release func()) *child {
	c := &child{
		process: process, pipes: p, release: release,
		out: newOutput(), outEnd: make(chan struct{}), outgo: make(chan *wire.ToWorker, maxOutgo), unsent: make(chan error, 1),
		exits: make(chan ended, 1), frames: make(chan frame), closing: make(chan struct{}),
	}
	outEnd := c.outEnd // an owner may set c.outEnd to nil
	c.tasks.Go(func() {
		c.out.readPipe(p.words)
		close(outEnd)
	})
	c.tasks.Go(func() {
		exit, err := process.Wait()
		c.exits <- ended{exit, err}
	})
	c.tasks.Go(func() { c.listen(p.from) })
	c.tasks.Go(func() { c.writeOrders(p.to) })
	return c
}

// close ends the goroutines of a child whose process has ended, and releases the executable.
func (c *child) close() {
	if c.process != nil {
		c.pipes.close()
		close(c.outgo)
		close(c.closing)
		c.tasks.Wait()
	}
	if c.release != nil {
		c.release()
	}
}

// listen reads the frames of the process and sends them to c.frames until EOF or an error.
func (c *child) listen(from *os.File) {
	frames := wire.NewReader[wire.FromWorker](from)
	for {
		f, err := frames.Next()
		select {
		case c.frames <- frame{f, err}:
		case <-c.closing:
			return
		}
		if err != nil {
			return
		}
	}
}

// writeOrders sends messages to the process. A process that does not read blocks only this
// goroutine. writeOrders ignores errors that mean that the process has ended, because c.exits
// reports the end.
func (c *child) writeOrders(to *os.File) {
	frames := wire.NewWriter[wire.ToWorker](to)
	for m := range c.outgo {
		err := frames.Write(m)
		if err == nil || errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
			continue
		}
		select {
		case c.unsent <- fmt.Errorf("a message for the worker cannot be sent: %w", err):
		default:
		}
	}
}

// pipes has the task manager's ends of a worker's pipes. They are nil until the process is
// launched.
type pipes struct {
	to    *os.File // commands for the worker, which reads them from file descriptor 3
	from  *os.File // frames of the worker, which writes them to file descriptor 4
	words *os.File // standard output and error of the worker
}

// makePipes makes the pipes of a worker. It returns the task manager's ends and the worker's
// ends.
func makePipes() (ours pipes, its Launch, err error) {
	pipe := func(r, w **os.File) {
		if err == nil {
			*r, *w, err = os.Pipe()
		}
	}
	pipe(&its.Reads, &ours.to)
	pipe(&ours.from, &its.Writes)
	pipe(&ours.words, &its.Output)
	if err != nil {
		ours.close()
		its.close()
	}
	return ours, its, err
}

// close closes this process's copies of the worker's ends; the worker's process has its own
// copies.
func (l Launch) close() { closeAll(l.Reads, l.Writes, l.Output) }

// close closes the task manager's ends of the pipes. The goroutines that read and write the
// pipes then end.
func (p pipes) close() { closeAll(p.to, p.from, p.words) }

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close() // a pipe has no buffered data that could be lost, so the error does not matter
		}
	}
}

// boundDrain bounds the time for reading the rest of the output of a process that has ended.
func (p pipes) boundDrain() { setDeadline(p.words, time.Now().Add(drainTime)) }

// stopReading ends the reading of frames of a process that has ended.
func (p pipes) stopReading() { setDeadline(p.from, time.Now()) }

func setDeadline(f *os.File, at time.Time) {
	if f != nil {
		_ = f.SetReadDeadline(at) // cannot fail for a pipe
	}
}

// settle waits, for a bounded time, until the output that the process wrote before its last
// frame was read.
func (p pipes) settle(out *output) {
	for range 50 {
		if out == nil || out.empty(p.words) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
