package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	tries       = 6               // how often a request is sent at most
	longestWait = 5 * time.Second // limit of the time between two of them
	rate        = 256 << 10       // bytes per second that a connection must carry
	grace       = 5 * time.Second // for the answer to a put after its context has ended
)

// operation is a request to the store, or several in turn.
type operation struct {
	what  string // for messages
	size  int64  // bytes of a request and its answer at most
	write bool   // whether it puts an object
	// do carries it out, or goes on with it after an error. It calls progress when a request has
	// succeeded and it sends another.
	do func(ctx context.Context, progress func()) error
}

// call tries an operation until it succeeds, fails for a reason that stays, or has failed too often.
func (b *bucket) call(ctx context.Context, o *operation) error {
	wait, try := b.wait, 0
	progress := func() { wait, try = b.wait, 0 }
	var last error
	for ctx.Err() == nil {
		err := b.once(ctx, o, progress)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			break
		}
		last = err
		if o.write {
			b.failed.Store(&failedWrite{time.Now(), b.failure(o, err)})
		}
		if try++; try == tries || !passing(err) {
			return b.failure(o, err)
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2+1)):
		case <-ctx.Done():
		}
		wait = min(2*wait, longestWait)
	}
	err := context.Cause(ctx)
	if last != nil {
		err = fmt.Errorf("%w; before that: %w", err, last)
	}
	return b.failure(o, err)
}

// failure adds what was asked of whom to an error, and what to do.
func (b *bucket) failure(o *operation, err error) error {
	if advice := b.advice(err); advice != "" {
		err = fmt.Errorf("%w: %s", err, advice)
	}
	return fmt.Errorf("%s of %s: %w", o.what, b, err)
}

// once carries out an operation once, and ends it if a request takes too long.
func (b *bucket) once(ctx context.Context, o *operation, progress func()) error {
	if o.write {
		var end context.CancelFunc
		ctx, end = withGrace(ctx)
		defer end()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := b.timeout + time.Duration(o.size/rate)*time.Second
	timer := time.AfterFunc(limit, func() { cancel(&timeoutError{limit}) })
	defer timer.Stop()
	err := o.do(ctx, func() {
		timer.Reset(limit)
		progress()
	})
	if err != nil && ctx.Err() != nil {
		return &networkError{context.Cause(ctx)}
	}
	return cause(err)
}

// withGrace returns a context that ends some time after ctx. A store may carry out a put whose
// connection has ended, at any later time, so the answer to one is awaited if it comes soon.
func withGrace(ctx context.Context) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { cancel(context.Cause(ctx)) })
	})
	return later, func() {
		stop()
		cancel(nil)
	}
}

// body is the body of a request. The transport may read it after the end of the request, so
// release takes the data away.
type body struct {
	mu   sync.Mutex
	data []byte
	done bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.done:
		return 0, errors.New("the request has ended")
	case len(b.data) == 0:
		return 0, io.EOF
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	return n, nil
}

func (b *body) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data, b.done = nil, true
}
