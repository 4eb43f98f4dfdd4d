package jobmanager

import (
	"sync"
	"time"
)

// A recorder writes what the core wants on disk, in order and in a goroutine of its own, so
// that deciding never waits for a disk. Entries that have gathered are written together: many
// jobs share one flush.
type recorder struct {
	write func([]change) error
	fail  func(error) // told when something cannot be written
	retry time.Duration

	mu     sync.Mutex
	queue  []entry
	closed bool
	wake   chan struct{} // has room for one
	done   chan struct{}
}

// entry is an optional change, and a function to call when it is on disk or could not be
// written. Entries are processed in order.
type entry struct {
	change *change
	// then is called by the recorder's goroutine. If it is nil, the change is retried until it
	// can be written.
	then func(error)
	// kept is called when the change is on disk at last, if then is nil. It may be nil.
	kept func()
}

func newRecorder(write func([]change) error, fail func(error), retry time.Duration) *recorder {
	r := &recorder{write: write, fail: fail, retry: retry, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go r.run()
	return r
}

// put adds an entry, and does not wait.
func (r *recorder) put(e entry) {
	r.mu.Lock()
	r.queue = append(r.queue, e)
	r.mu.Unlock()
	r.signal()
}

func (r *recorder) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// close processes the remaining entries and then returns. A change that cannot be written then
// is lost.
func (r *recorder) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.signal()
	<-r.done
}

func (r *recorder) run() {
	defer close(r.done)
	var unwritten []entry
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-r.wake:
		case <-again.C:
		}
		r.mu.Lock()
		batch, closed := r.queue, r.closed
		r.queue = nil
		r.mu.Unlock()
		if unwritten = r.do(unwritten, batch); len(unwritten) > 0 {
			again.Reset(r.retry)
		}
		if closed && len(batch) == 0 {
			return
		}
		if closed {
			r.signal() // entries may have added more
		}
	}
}

// do writes a batch after the entries that could not be written before, and returns the entries
// to retry.
func (r *recorder) do(unwritten, batch []entry) []entry {
	var changes []change
	for _, entries := range [][]entry{unwritten, batch} {
		for _, e := range entries {
			if e.change != nil {
				changes = append(changes, *e.change)
			}
		}
	}
	var err error
	if len(changes) > 0 {
		if err = r.write(changes); err != nil {
			r.fail(err)
		}
	}
	if err == nil {
		for _, e := range unwritten {
			e.written()
		}
		unwritten = nil
	}
	for _, e := range batch {
		switch {
		case e.then != nil && e.change == nil:
			e.then(nil)
		case e.then != nil:
			e.then(err)
		case e.change != nil && err != nil:
			unwritten = append(unwritten, e)
		default:
			e.written()
		}
	}
	return unwritten
}

func (e *entry) written() {
	if e.kept != nil {
		e.kept()
	}
}
