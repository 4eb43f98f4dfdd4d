package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/engine/checkpoint"
)

// store is a place for checkpoints that all machines share. Every operation takes time, and happens as a
// whole or not at all if the process dies before. It belongs to the latest attempt that has opened it.
type store struct {
	w         *world
	name      string
	blobs     map[string][]byte
	manifests map[string][]string // name of a manifest -> its blobs
	owner     int                 // the attempt
	holder    *handle
	down      bool
}

var _ checkpoint.Store = (*handle)(nil)

func (w *world) newStore(name string) *store {
	return &store{w: w, name: name, blobs: make(map[string][]byte), manifests: make(map[string][]string)}
}

var errStoreDown = errors.New("the store does not answer")

// handle is a store as a process has opened it. Its operations wait in the fiber f.
type handle struct {
	*store
	f       *fiber
	c       *workerProcess
	attempt int
	locked  bool
}

// open opens the store for an attempt, which takes it over from earlier ones.
func (s *store) open(f *fiber, k *worker) (*handle, error) {
	ref := k.d.WorkerRef
	h := &handle{store: s, f: f, c: k.c, attempt: ref.Attempt, locked: true}
	err := h.do("open", func() error {
		if s.owner > ref.Attempt || s.owner == ref.Attempt && s.holder != nil && s.holder != h && !s.holder.c.dead {
			return checkpoint.ErrTaken
		}
		s.owner, s.holder = ref.Attempt, h
		return nil
	})
	return h, err
}

// join opens the store without the right to it alone.
func (s *store) join(f *fiber, k *worker) *handle {
	return &handle{store: s, f: f, c: k.c, attempt: k.d.Attempt}
}

// release gives up the right to the store.
func (s *store) release(h *handle) {
	if s.holder == h {
		s.holder = nil
	}
}

// do does one operation.
func (h *handle) do(what string, f func() error) error {
	if !h.f.inside {
		return errStopped
	}
	h.w.point("store", h.c)
	d := h.w.between(200*time.Microsecond, 6*time.Millisecond)
	if h.w.chance(80) {
		d += h.w.between(0, 700*time.Millisecond)
	}
	if err := h.f.sleep(d); err != nil {
		return err
	}
	if h.down {
		return fmt.Errorf("%s: %w", what, errStoreDown)
	}
	err := f()
	h.check(what)
	return err
}

func (h *handle) Put(_ context.Context, name string, data []byte) error {
	data = slices.Clone(data)
	return h.do("put "+name, func() error {
		h.place(name, data)
		return nil
	})
}

func (h *handle) Publish(_ context.Context, name string, data []byte) error {
	data = slices.Clone(data)
	return h.do("publish "+name, func() error {
		switch {
		case h.locked && h.owner > h.attempt:
			h.w.marks["a lost attempt is kept from writing a checkpoint"]++
			return checkpoint.ErrTaken
		case h.blobs[name] != nil:
			return &fs.PathError{Op: "publish", Path: name, Err: fs.ErrExist}
		}
		h.place(name, data)
		return nil
	})
}

// place stores a blob, which may be a manifest.
func (h *handle) place(name string, data []byte) {
	h.blobs[name] = data
	if strings.HasPrefix(name, "checkpoint-") {
		h.manifests[name] = blobsOf(data)
		h.w.say("%s has %s of attempt %d", h.name, name, h.attempt)
	}
}

func (h *handle) Get(_ context.Context, name string, most int64) (data []byte, err error) {
	err = h.do("get "+name, func() error {
		found, ok := h.blobs[name]
		switch {
		case !ok:
			return &fs.PathError{Op: "get", Path: name, Err: fs.ErrNotExist}
		case int64(len(found)) > most:
			return fmt.Errorf("%s has more than %d bytes", name, most)
		}
		data = slices.Clone(found)
		return nil
	})
	return data, err
}

func (h *handle) List(context.Context) (names []string, err error) {
	err = h.do("list", func() error {
		names = slices.Sorted(maps.Keys(h.blobs))
		return nil
	})
	return names, err
}

func (h *handle) Delete(_ context.Context, name string) error {
	return h.do("delete "+name, func() error {
		delete(h.blobs, name)
		delete(h.manifests, name)
		return nil
	})
}

func (h *handle) String() string { return h.name }
func (h *handle) Close() error   { return nil }

// check requires that every manifest has its blobs.
func (s *store) check(after string) {
	for manifest, blobs := range s.manifests {
		for _, b := range blobs {
			if s.blobs[b] == nil {
				s.w.violated("%s: after %q, %s lacks %s", s.name, after, manifest, b)
			}
		}
	}
}

// blobsOf returns the names of the blobs of a manifest.
func blobsOf(data []byte) (names []string) {
	line, _, _ := strings.Cut(string(data), "\n")
	var m checkpoint.Manifest
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		panic(err)
	}
	for _, q := range m.Queues {
		for _, b := range q.Blobs {
			names = append(names, b.Name)
		}
	}
	return names
}
