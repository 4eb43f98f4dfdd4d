package jobmanager

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/spelling"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// Cordon keeps new workers from the task managers of a name. It returns when the cordon is on
// disk; if it cannot be written, nothing changes.
func (m *Manager) Cordon(ctx context.Context, req *wire.CordonRequest) (*wire.CordonReply, error) {
	if err := checkReason(req.Reason); err != nil {
		return nil, err
	}
	return m.changeCordon(ctx, req.TaskManager, func() *wire.Cordon {
		next := m.core.NextCordon(req.TaskManager, req.Reason, m.config.Now())
		return &next
	})
}

func checkReason(reason string) error {
	if !wire.CheckReason(reason) {
		return wire.Error(codes.InvalidArgument, "the reason of a cordon is one line of printable text of at most %d bytes: give a shorter or plainer one", wire.MaxReason)
	}
	return nil
}

// Uncordon allows new workers on the task managers of a name. It returns when this is on disk;
// if it cannot be written, nothing changes.
func (m *Manager) Uncordon(ctx context.Context, req *wire.UncordonRequest) (*wire.CordonReply, error) {
	return m.changeCordon(ctx, req.TaskManager, func() *wire.Cordon { return nil })
}

// changeCordon changes the cordon of a name to the one that next returns, which is nil if there
// must be none. It calls next with mu held.
func (m *Manager) changeCordon(ctx context.Context, name string, next func() *wire.Cordon) (*wire.CordonReply, error) {
	written := make(chan error, 1)
	changed, err := m.recordCordon(name, next, written)
	if err != nil {
		return nil, err
	}
	if changed {
		select {
		case err := <-written:
			if err != nil {
				return nil, wire.Error(codes.Unavailable, "the job manager could not put the change on record, so nothing changes for task manager %s: %v", name, err)
			}
		case <-ctx.Done(): // the change may still be made; repeating the request is harmless
			return nil, ctx.Err()
		case <-m.ctx.Done():
			return nil, errStops
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := m.core.CordonReply(name)
	reply.Changed = changed
	switch {
	case changed && reply.Cordon != nil:
		m.log.Info("a task manager was cordoned", "from", from(ctx), "task manager", name, "reason", reply.Cordon.Reason, "slots left", reply.Slots)
	case changed:
		m.log.Info("a task manager was uncordoned", "from", from(ctx), "task manager", name)
	}
	return &reply, nil
}

var errStops = wire.Error(codes.Unavailable, "the job manager stops")

// recordCordon puts a change of a cordon into the recorder's queue, unless it changes nothing.
// When the change is on disk, the recorder passes it to the core. Then, or if it cannot be
// written, written gets the result.
func (m *Manager) recordCordon(name string, next func() *wire.Cordon, written chan<- error) (changed bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false, errStops
	}
	known := m.core.TaskManagerNames()
	if _, ok := slices.BinarySearch(known, name); !ok {
		return false, wire.Error(codes.NotFound, "there is no task manager %.100q%s: see superstep taskmanagers", name, spelling.DidYouMean("; ", name, known))
	}
	before, after := m.core.Cordon(name), next()
	if before == after || before != nil && after != nil && *before == *after {
		return false, nil
	}
	c := change{taskManager: name}
	var event core.Event = core.Uncordoned{TaskManager: name}
	if after != nil {
		event = core.Cordoned{TaskManager: name, Cordon: *after}
		if c.cordon, err = wire.Marshal(after); err != nil {
			return false, fmt.Errorf("encode the cordon of task manager %s: %w", name, err)
		}
	}
	m.recorder.put(entry{change: &c, then: func(err error) {
		if err == nil {
			m.step(event)
		}
		written <- err
	}})
	return true, nil
}

// applyCordon applies a change whose taskManager is set.
func (c *change) applyCordon(tx *bbolt.Tx, all *contentSum) error {
	b, key := tx.Bucket(cordonsBucket), []byte(c.taskManager)
	all.leave(b.Get(key))
	if c.cordon == nil {
		return b.Delete(key)
	}
	sealed := seal(cordonsBucket, key, c.cordon)
	all.enter(sealed)
	return b.Put(key, sealed)
}

// cordons returns all recorded cordons by the names of task managers.
func (h *history) cordons() (map[string]wire.Cordon, error) {
	all := make(map[string]wire.Cordon)
	err := h.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(cordonsBucket).ForEach(func(key, sealed []byte) error {
			var cordon wire.Cordon
			data, err := unseal(cordonsBucket, key, sealed)
			if err == nil {
				err = wire.Unmarshal(data, &cordon)
			}
			if err != nil {
				return fmt.Errorf("task manager %s: %w", key, err)
			}
			all[string(key)] = cordon
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the cordons of task managers: %w", err)
	}
	return all, nil
}

// replaceLostCordons records a new cordon for each name in h.lostCordons that has none. A damaged
// record must not let new workers onto a machine that somebody wanted to keep free of them.
func (h *history) replaceLostCordons(cordons map[string]wire.Cordon, now time.Time) error {
	var changes []change
	for _, name := range h.lostCordons {
		if _, ok := cordons[name]; ok {
			continue
		}
		cordon := wire.Cordon{Since: now, Reason: fmt.Sprintf("why and since when is lost, as the history was damaged (%s)", h.damaged)}
		data, err := wire.Marshal(&cordon)
		if err != nil {
			return fmt.Errorf("encode the cordon of task manager %s: %w", name, err)
		}
		changes = append(changes, change{taskManager: name, cordon: data})
		cordons[name] = cordon
	}
	if len(changes) == 0 {
		return nil
	}
	return h.write(changes)
}

// openCordons returns the recorded cordons.
func (m *Manager) openCordons() (map[string]wire.Cordon, error) {
	cordons, err := m.history.cordons()
	if err != nil {
		return nil, err
	}
	if err := m.history.replaceLostCordons(cordons, m.config.Now()); err != nil {
		return nil, err
	}
	if len(cordons) > 0 {
		m.log.Warn("task managers of these names are cordoned: they get no new workers", "names", slices.Sorted(maps.Keys(cordons)))
	}
	return cordons, nil
}
