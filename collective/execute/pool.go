package execute

import "sync"

// Pool keeps goroutines for the runs of several Runners, so that runs need not start new
// goroutines. It grows to the largest number of halves that have run at the same time. Several
// goroutines may use it.
type Pool struct {
	mu   sync.Mutex
	idle []*worker
	all  sync.WaitGroup
}

// NewPool returns an empty pool.
func NewPool() *Pool { return &Pool{} }

// Close ends the goroutines and returns when they have ended. No run of a Runner
// that uses the pool may be under way, or begin later.
func (p *Pool) Close() {
	p.mu.Lock()
	for _, w := range p.idle {
		close(w.work)
	}
	p.idle = nil
	p.mu.Unlock()
	p.all.Wait()
}

// start runs a half on a goroutine of the pool.
func (p *Pool) start(h *half) {
	p.mu.Lock()
	var w *worker
	if n := len(p.idle); n > 0 {
		w, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	if w == nil {
		w = &worker{pool: p, work: make(chan *half, 1)}
		p.all.Go(w.live)
	}
	w.work <- h
}

// worker is a goroutine that waits for halves to run.
type worker struct {
	pool *Pool
	work chan *half
}

func (w *worker) live() {
	for h := range w.work {
		w.do(h)
	}
}

// do runs a half. If the user's operator panics, the run fails. If the operator ends the
// goroutine, the run fails too, and the pool loses the worker.
func (w *worker) do(h *half) {
	returned := false
	defer func() {
		alive := returned
		if !returned {
			alive = h.recoverPanic(recover())
		}
		if alive {
			// Add the worker to the pool before the end of the half is reported, so that the
			// next run finds it.
			w.pool.mu.Lock()
			w.pool.idle = append(w.pool.idle, w)
			w.pool.mu.Unlock()
		}
		h.r.done()
	}()
	h.run()
	returned = true
}
