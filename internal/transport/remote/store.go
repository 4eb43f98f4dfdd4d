package remote

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// Store is a place for small values that all workers of the attempt see. Worker 0
// keeps it. Its methods may be called from any goroutine.
type Store struct{ n *Network }

// Store returns the store of the attempt.
func (n *Network) Store() *Store { return &Store{n} }

// Set sets a key, which may have a value already.
func (s *Store) Set(ctx context.Context, key string, value []byte) error {
	err := checkEntry(key, value)
	switch {
	case err != nil:
	case s.n.store != nil:
		err = s.n.store.set(key, value)
	default:
		_, err = s.ask(ctx, kindSet, func(id uint32) []byte {
			b := binary.LittleEndian.AppendUint32(nil, id)
			b = binary.LittleEndian.AppendUint16(b, uint16(len(key)))
			return frame(kindSet, s.n.summed(), b, []byte(key), value)
		})
	}
	if err != nil {
		return fmt.Errorf("set %q in the store of worker 0: %w", key, err)
	}
	return nil
}

// Get returns the value of a key, and waits until there is one.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	value, err := s.get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("get %q from the store of worker 0: %w", key, err)
	}
	return value, nil
}

func (s *Store) get(ctx context.Context, key string) ([]byte, error) {
	if err := checkEntry(key, nil); err != nil {
		return nil, err
	}
	if s.n.store == nil {
		return s.ask(ctx, kindGet, func(id uint32) []byte {
			return frame(kindGet, s.n.summed(), binary.LittleEndian.AppendUint32(nil, id), []byte(key))
		})
	}
	found := make(chan []byte, 1)
	giveUp, err := s.n.store.get(key, func(value []byte) { found <- value })
	if err != nil {
		return nil, err
	}
	defer giveUp()
	select {
	case value := <-found:
		return value, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.n.broken:
		return nil, s.n.cause()
	case <-s.n.ctx.Done():
		return nil, s.n.cause()
	}
}

// checkEntry bounds what is stored.
func checkEntry(key string, value []byte) error {
	if len(key) > maxKey || len(value) > maxValue {
		return fmt.Errorf("a key of %d bytes with a value of %d: at most %d and %d are kept", len(key), len(value), maxKey, maxValue)
	}
	return nil
}

// ask sends a request to worker 0 and waits for its answer.
func (s *Store) ask(ctx context.Context, k kind, request func(id uint32) []byte) ([]byte, error) {
	p, err := s.n.peer(0)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.opened:
	case <-p.over:
		return nil, p.cause()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	got := make(chan answer, 1)
	p.mu.Lock()
	p.call++
	id, c := p.call, p.conn
	p.calls[id] = got
	p.mu.Unlock()
	c.post(request(id))
	defer func() {
		p.mu.Lock()
		_, waits := p.calls[id]
		delete(p.calls, id)
		p.mu.Unlock()
		if waits && k == kindGet {
			c.post(frame(kindDrop, s.n.summed(), binary.LittleEndian.AppendUint32(nil, id)))
		}
	}()
	select {
	case a := <-got:
		return a.value, a.err
	case <-p.over:
		return nil, p.cause()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// cause is why the network does not work any more.
func (n *Network) cause() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// answer is what worker 0 says to a request.
type answer struct {
	value []byte
	err   error
}

// replied takes an answer of worker 0.
func (p *peer) replied(length int) error {
	b := make([]byte, length) // at most maxValue
	if _, err := io.ReadFull(&p.conn.body, b); err != nil {
		return err
	}
	id, a := binary.LittleEndian.Uint32(b), answer{value: b[5:]}
	switch {
	case p.worker != 0 || b[4] > 1:
		return violation("an answer %d of a store", b[4])
	case b[4] == 1:
		a = answer{err: fmt.Errorf("it answers: %.200q", b[5:])}
	}
	p.mu.Lock()
	got := p.calls[id]
	delete(p.calls, id)
	p.mu.Unlock()
	if got != nil { // else nobody waits any more
		got <- a
	}
	return nil
}

// request serves a request of another worker.
func (i *incoming) request(k kind, length int) error {
	if i.n.store == nil {
		return violation("a %v, though this is not worker 0", k)
	}
	b := make([]byte, length) // at most maxKey and maxValue
	if _, err := io.ReadFull(&i.body, b); err != nil {
		return err
	}
	id := binary.LittleEndian.Uint32(b)
	switch k {
	case kindSet:
		n := int(binary.LittleEndian.Uint16(b[4:]))
		if n > length-6 || checkEntry(string(b[6:6+n]), b[6+n:]) != nil {
			return violation("a set of %d bytes with a key of %d", length, n)
		}
		i.reply(id, nil, i.n.store.set(string(b[6:6+n]), b[6+n:]))
	case kindGet:
		i.reap()
		if len(i.gets) >= maxGets {
			return violation("more than %d gets at once", maxGets)
		}
		over := make(chan struct{})
		giveUp, err := i.n.store.get(string(b[4:]), func(value []byte) { close(over); i.reply(id, value, nil) })
		if err != nil {
			i.reply(id, nil, err)
			return nil
		}
		i.gets[id] = pendingGet{over, giveUp}
	case kindDrop:
		if g, ok := i.gets[id]; ok {
			g.giveUp()
			delete(i.gets, id)
		}
	}
	return nil
}

// pendingGet is a request that waits for a value.
type pendingGet struct {
	over   chan struct{} // closed when it was answered
	giveUp func()
}

// reap forgets the requests that were answered.
func (i *incoming) reap() {
	for id, g := range i.gets {
		select {
		case <-g.over:
			delete(i.gets, id)
		default:
		}
	}
}

// reply answers a request.
func (i *incoming) reply(id uint32, value []byte, err error) {
	failed := byte(0)
	if err != nil {
		failed, value = 1, []byte(err.Error())
	}
	b := append(binary.LittleEndian.AppendUint32(nil, id), failed)
	i.post(frame(kindReply, i.body.summed, b, value))
}

// keyValues is what worker 0 keeps. Values are never modified.
type keyValues struct {
	mu      sync.Mutex
	values  map[string][]byte
	waiting map[string]map[*func([]byte)]struct{}
}

func newKeyValues() *keyValues {
	return &keyValues{values: make(map[string][]byte), waiting: make(map[string]map[*func([]byte)]struct{})}
}

// set sets a value and tells it to those who wait for it.
func (s *keyValues) set(key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.values[key]; !known && len(s.values) == maxKeys {
		return fmt.Errorf("there are %d keys already", maxKeys)
	}
	value = append([]byte{}, value...)
	s.values[key] = value
	for found := range s.waiting[key] {
		(*found)(append([]byte{}, value...))
	}
	delete(s.waiting, key)
	return nil
}

// get calls found, which must not wait, with the value of a key as soon as there is
// one, and returns how to give that up.
func (s *keyValues) get(key string, found func([]byte)) (giveUp func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value, ok := s.values[key]; ok {
		found(append([]byte{}, value...))
		return func() {}, nil
	}
	if s.waiting[key] == nil {
		if len(s.waiting) == maxKeys {
			return nil, fmt.Errorf("there are gets of %d keys already", maxKeys)
		}
		s.waiting[key] = make(map[*func([]byte)]struct{})
	}
	s.waiting[key][&found] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting[key], &found)
		if len(s.waiting[key]) == 0 {
			delete(s.waiting, key)
		}
	}, nil
}
