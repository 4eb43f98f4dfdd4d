package s3store

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// leaseName is the name of the object that is the lease.
const leaseName = ".superstep.checkpoint-lease"

const (
	leaseTime = time.Minute     // a lease that was not renewed for this long has ended
	renewal   = leaseTime / 4   // time between two renewals
	look      = 5 * time.Second // time between two looks at the lease of another run
	mostLease = 16 << 10        // bytes of a lease
	margin    = 2 * time.Second // after the end of a lease until another run takes it; the store's times are whole seconds
	mostTakes = 10              // how often a lease is asked for that others take and give back meanwhile
)

// lease is the right of a run to write at a place. Its object says which run has it, and is
// written anew every 15 seconds. A lease that was not renewed for a minute has ended, and another
// run may take it. Every write has the condition that the object is absent, or has the ETag that
// was seen last. So of several runs one gets the lease, and a run notices that it has lost it.
//
// How long ago the object was written is measured by the store's clock alone. A run measures the
// age of its own lease from before the renewal began, by its monotonic clock, so that its lease
// ends for itself before it does for others.
//
// A write that was on its way when the lease ended may still arrive. If it replaces an object of
// the next run, the checksums in that run's manifest tell.
type lease struct {
	bucket *bucket
	key    string
	fail   func(error)
	cancel context.CancelFunc // ends the renewals
	ended  chan struct{}      // closed when they have ended

	writing chan struct{} // has an element while the lease is written; guards holder and etag
	holder  holder
	etag    string

	mu      sync.Mutex
	renewed time.Time // when the last renewal that succeeded began
	lost    error     // why the lease is lost for good
}

// holder is the content of the object.
type holder struct {
	Run     string `json:"run"` // random, of one run
	Host    string `json:"host"`
	Process int    `json:"process"`
	Renewal int    `json:"renewal"` // number, so that all contents differ
	Job     string `json:"job,omitempty"`
	Attempt int    `json:"attempt,omitempty"` // of the job
}

// take takes the lease of a place and begins to renew it.
func take(ctx context.Context, bucket *bucket, key string, c Config) (*lease, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	l := &lease{bucket: bucket, key: key, fail: c.Fail, ended: make(chan struct{}), writing: make(chan struct{}, 1),
		holder: holder{Run: rand.Text(), Host: host, Process: os.Getpid(), Job: c.Job, Attempt: c.Attempt}}
	if err := l.take(ctx, c.Say); err != nil {
		return nil, err
	}
	if err := l.verifyConditions(ctx); err != nil {
		return nil, err
	}
	renewing, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	go l.renewals(renewing)
	return l, nil
}

// take writes the lease as soon as no other run has it. It fails if another run renews it.
func (l *lease) take(ctx context.Context, say func(string)) error {
	for range mostTakes {
		err := l.write(ctx, condition{absent: true})
		if err == nil || !conditionFailed(err) {
			return err
		}
		found, err := l.awaitEnd(ctx, say)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was given back meanwhile
		}
		if err != nil {
			return err
		}
		if err = l.write(ctx, condition{etag: found}); err == nil {
			return nil
		}
		if !conditionFailed(err) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.New("several other runs begin to write their checkpoints here at this moment: give each run a prefix of its own")
}

// awaitEnd waits until the lease in the store has ended, and returns its ETag.
func (l *lease) awaitEnd(ctx context.Context, say func(string)) (etag string, err error) {
	for first := true; ; first = false {
		o, err := l.bucket.get(ctx, l.key, mostLease)
		if err != nil {
			return "", err
		}
		var other holder
		if err := json.Unmarshal(o.data, &other); err != nil {
			return "", fmt.Errorf("the object %s is no lease of a run: %w: remove it if no run writes here", l.key, err)
		}
		switch {
		case other.Run == l.holder.Run: // written by this run, in a request whose answer was lost
			return o.etag, nil
		case other.Job != "" && other.Job == l.holder.Job && other.Attempt < l.holder.Attempt:
			return o.etag, nil
		case !first && o.etag != etag:
			return "", fmt.Errorf("another run writes its checkpoints here, process %d on %s: give each run a prefix of its own", other.Process, other.Host)
		case o.age >= leaseTime+margin:
			return o.etag, nil
		case first && say != nil:
			say(fmt.Sprintf("process %d on %s had this place for its checkpoints %v ago: waiting until it shows that it still runs, or %v have passed", other.Process, other.Host, o.age, leaseTime))
		}
		etag = o.etag
		select {
		case <-time.After(min(look, leaseTime+margin-o.age)):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// write writes the lease once. The caller has put an element into writing, or is the only one that
// knows the lease.
func (l *lease) write(ctx context.Context, when condition) error {
	began := time.Now()
	l.holder.Renewal++
	data, err := json.Marshal(l.holder)
	if err != nil {
		return err
	}
	etag, err := l.bucket.put(ctx, l.key, append(data, '\n'), when)
	if err != nil {
		return err
	}
	l.etag = etag
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = began
	return nil
}

// verifyConditions returns an error if the store ignores conditions, so that leases mean nothing.
func (l *lease) verifyConditions(ctx context.Context) error {
	_, err := l.bucket.put(ctx, l.key, nil, condition{absent: true})
	if conditionFailed(err) {
		return nil
	}
	if err == nil {
		err = errors.Join(errors.New("the store ignores the header If-None-Match of requests, so two runs could write to the same place: use a store that has conditional writes"), l.bucket.delete(ctx, l.key))
	}
	return err
}

// renewals renews the lease until the context ends or the lease is lost.
func (l *lease) renewals(ctx context.Context) {
	defer close(l.ended)
	for {
		select {
		case <-time.After(renewal):
		case <-ctx.Done():
			return
		}
		limited, cancel := context.WithTimeout(ctx, renewal)
		err := l.renew(limited)
		cancel()
		var lost *lostError
		if errors.As(err, &lost) {
			return
		} // other errors matter only if they last, and then hold returns them
	}
}

// hold returns nil while the run has the lease. If renewals have failed for too long, it tries one.
func (l *lease) hold(ctx context.Context) error {
	l.mu.Lock()
	lost, valid := l.lost, time.Since(l.renewed) < leaseTime
	l.mu.Unlock()
	switch {
	case lost != nil:
		return lost
	case valid:
		return nil
	}
	return l.renew(ctx)
}

// lostError is the error of a lease that another run has taken.
type lostError struct {
	error
	gone bool
}

// Is reports whether target is ErrGone and the lease was removed.
func (e *lostError) Is(target error) bool { return e.gone && target == ErrGone }

// ErrGone is matched by the error with which Config.Fail is called if the lease was removed and no other run
// has the place. Either somebody has removed the objects there, or another run has ended since.
var ErrGone = errors.New("the objects of the checkpoints were removed while the run went on")

// lose notes that the lease is lost for good, and ends the run.
func (l *lease) lose(err *lostError) error {
	l.mu.Lock()
	l.lost = err
	l.mu.Unlock()
	l.fail(err)
	return err
}

// renew writes the lease anew, unless another run has it.
func (l *lease) renew(ctx context.Context) error {
	select {
	case l.writing <- struct{}{}:
		defer func() { <-l.writing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	l.mu.Lock()
	lost := l.lost
	l.mu.Unlock()
	if lost != nil {
		return lost
	}
	err := l.write(ctx, condition{etag: l.etag})
	if !conditionFailed(err) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// The answer to an earlier request may have been lost, or another run has the lease.
	o, err := l.bucket.get(ctx, l.key, mostLease)
	if errors.Is(err, fs.ErrNotExist) {
		err := fmt.Errorf("the object %s of this run is gone from %s: another run has taken over the place and has ended, or somebody has removed its objects; this run stops writing checkpoints", l.key, l.bucket)
		return l.lose(&lostError{err, true})
	}
	if err != nil {
		return err
	}
	var other holder
	if err := json.Unmarshal(o.data, &other); err == nil && other.Run == l.holder.Run {
		l.etag = o.etag
		return l.write(ctx, condition{etag: l.etag})
	}
	err = fmt.Errorf("another run, process %d on %s, has taken over the checkpoints at %s in %s, as this run had not renewed its lease for %v; this run stops writing them",
		other.Process, cmp.Or(other.Host, "an unknown machine"), l.key, l.bucket, leaseTime)
	return l.lose(&lostError{err, false})
}

// giveBack ends the renewals and removes the lease, unless it is lost.
func (l *lease) giveBack(ctx context.Context) error {
	l.cancel()
	<-l.ended
	err := l.renew(ctx) // then no other run takes it before it is removed
	var lost *lostError
	if errors.As(err, &lost) {
		return nil
	}
	if err != nil {
		return err
	}
	return l.bucket.delete(ctx, l.key)
}
