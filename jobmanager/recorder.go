package jobmanager

import (
	"sync"
	"time"
)

// A recorder writes changes to the history, in order. It uses a separate goroutine, so that the
// core never waits for a disk. It writes the changes of all waiting entries in one transaction,
// so that many jobs share one flush of the disk.
type recorder struct {
	write func([]change) error
	fail  func(error) // called when changes cannot be written
	retry time.Duration

	mu     sync.Mutex
	queue  []entry
	closed bool
	wake   chan struct{} // buffer of one: has an element when there may be entries
	done   chan struct{}
}

// entry has an optional change, and the functions to call when the change is on disk or could
// not be written. Entries are processed in order.
type entry struct {
	change *change
	// then is called by the recorder's goroutine with the result of the first attempt to write
	// the change. If then is nil, writing is retried until it succeeds.
	then func(error)
	// kept, if it is not nil, is called when the change and all earlier ones are on disk. It is used
	// only if then is nil.
	kept func()
}

func newRecorder(write func([]change) error, fail func(error), retry time.Duration) *recorder {
	r := &recorder{write: write, fail: fail, retry: retry, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go r.run()
	return r
}

// put adds an entry to the queue. It does not wait.
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

// close processes the remaining entries and then returns. Changes that still cannot be written
// are lost.
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
			r.signal() // the functions of entries may have added entries
		}
	}
}

// do writes the changes of unwritten, which could not be written before, and of batch, and
// calls the functions of the entries. It returns the entries to be retried.
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
		case err != nil:
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
