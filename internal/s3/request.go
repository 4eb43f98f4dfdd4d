package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

const (
	tries       = 6               // how often a request is sent at most
	longestWait = 5 * time.Second // limit of the time between two of them
	rate        = 256 << 10       // bytes per second that a connection must carry
	grace       = 5 * time.Second // for the answer to a put after its context has ended
	mostError   = 64 << 10        // bytes that are read of an error
)

// request is a request to the store.
type request struct {
	method string
	key    string
	query  map[string]string
	header map[string]string
	body   []byte
	most   int64                 // limit of the bytes of the answer's body
	check  func(a *answer) error // finds damage in an answer, after which the request is sent again; may be nil
}

// answer is the answer to a request that has succeeded.
type answer struct {
	header http.Header
	body   []byte
}

// call sends a request until it succeeds, fails for a reason that stays, or has failed too often.
func (b *Bucket) call(ctx context.Context, r *request) (*answer, error) {
	wait := b.config.Wait
	var last error
	for try := 1; ctx.Err() == nil; try++ {
		a, err := b.once(ctx, r)
		if err == nil {
			return a, nil
		}
		if ctx.Err() != nil {
			break
		}
		last = err
		if try == tries || !passing(err) {
			return nil, b.failure(r, err)
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
	return nil, b.failure(r, err)
}

// failure adds what was asked of whom to an error, and what to do.
func (b *Bucket) failure(r *request, err error) error {
	verb := map[string]string{http.MethodPut: "write", http.MethodGet: "read", http.MethodDelete: "delete"}[r.method]
	what := verb + " object " + r.key
	if r.key == "" {
		what = "list the objects"
	}
	if advice := b.advice(err); advice != "" {
		err = fmt.Errorf("%w: %s", err, advice)
	}
	return fmt.Errorf("%s of %s: %w", what, b, err)
}

// once sends a request once.
func (b *Bucket) once(ctx context.Context, r *request) (*answer, error) {
	limit := b.config.Timeout + time.Duration(int64(len(r.body))+r.most)/rate*time.Second
	if r.method == http.MethodPut {
		var end context.CancelFunc
		ctx, end = withGrace(ctx)
		defer end()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &timeoutError{limit})
	defer cancel()
	req, body := b.request(ctx, r)
	defer body.release()
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, networkCause(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		data, err := io.ReadAll(io.LimitReader(resp.Body, mostError))
		if err != nil {
			return nil, networkCause(ctx, err)
		}
		e := newError(resp, data)
		if e.Code == timeTooSkewed {
			b.skew.learn(resp.Header)
		}
		return nil, e
	}
	if resp.ContentLength > r.most {
		return nil, &answerError{fmt.Errorf("it has %d bytes, and at most %d are expected", resp.ContentLength, r.most), false}
	}
	buffer := bytes.NewBuffer(make([]byte, 0, max(0, resp.ContentLength)+bytes.MinRead))
	if _, err = buffer.ReadFrom(io.LimitReader(resp.Body, r.most+1)); err != nil {
		return nil, networkCause(ctx, err)
	}
	if int64(buffer.Len()) > r.most {
		return nil, &answerError{fmt.Errorf("it has more than the %d bytes that are expected", r.most), false}
	}
	a := &answer{resp.Header, buffer.Bytes()}
	if r.check != nil {
		if err := r.check(a); err != nil {
			return nil, &answerError{err, true}
		}
	}
	return a, nil
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

// request returns the signed HTTP request.
func (b *Bucket) request(ctx context.Context, r *request) (*http.Request, *body) {
	u := b.base
	u.Path += "/" + r.key
	u.RawPath, u.RawQuery = escape(u.Path, "/"), query(r.query)
	body := &body{data: r.body}
	req := (&http.Request{
		Method: r.method, URL: &u, Host: u.Host, Header: make(http.Header), Body: body, ContentLength: int64(len(r.body)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if len(r.body) == 0 {
		req.Body = http.NoBody
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	b.config.sign(req, hexSum(r.body), b.skew.now())
	return req, body
}

// networkCause returns why there is no answer to a request, without the URL, which the caller adds.
func networkCause(ctx context.Context, err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return &networkError{err}
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

// Close implements io.Closer.
func (b *body) Close() error { return nil }

func (b *body) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data, b.done = nil, true
}

// clockSkew is by how much the store's clock is ahead of this machine's. It is 0 until the store
// has refused a request because the clocks differ by more than 15 minutes.
type clockSkew struct{ ahead atomic.Int64 }

func (c *clockSkew) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clockSkew) learn(h http.Header) {
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		c.ahead.Store(int64(time.Until(at)))
	}
}
