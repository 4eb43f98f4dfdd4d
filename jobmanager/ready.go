package jobmanager

import (
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Ready returns nil while jobs can be taken in, and else why they cannot.
func (m *Manager) Ready() error {
	if m.ctx.Err() != nil {
		return errors.New("the job manager stops")
	}
	if full := m.lookAtDisk(); full != "" {
		return errors.New(full)
	}
	if err := m.ailing.Load(); err == nil || *err == nil {
		return nil
	}
	// Nothing may have been written since; who is not ready is sent nothing to write.
	err := m.history.write(nil)
	m.ailing.Store(&err)
	return err
}

// ails says why no jobs are taken, as far as is known without writing; nothing while they
// are.
func (m *Manager) ails() string {
	if full := m.lookAtDisk(); full != "" {
		return full
	}
	if err := m.ailing.Load(); err != nil && *err != nil {
		return wire.Reason(*err)
	}
	return ""
}

// roomToWrite refuses what would be written to a disk that is nearly full, so that those
// jobs that run can end well.
func (m *Manager) roomToWrite() error {
	if full := m.lookAtDisk(); full != "" {
		return wire.Error(codes.ResourceExhausted, "the job manager takes no jobs: %s", full)
	}
	return nil
}

// fullness is what the log was told of the disk.
type fullness struct {
	mu  sync.Mutex
	why string // it is too full; "" if it is not
}

// lookAtDisk says how full the disk is if that is too full, and else nothing. The log is
// told when that begins and when it ends.
func (m *Manager) lookAtDisk() string {
	m.full.mu.Lock()
	defer m.full.mu.Unlock()
	now, before := m.space.Read(), m.full.why
	m.full.why = now.Full
	switch {
	case before == "" && now.Full != "":
		m.log.Warn("the job manager takes no jobs", "why", now.Full, "dir", m.config.Dir)
	case before != "" && now.Full == "":
		m.log.Info("the job manager takes jobs again", "free", now.Free, "dir", m.config.Dir)
	}
	return now.Full
}

// diskEvery is how often the disk is looked at where nobody asks.
const diskEvery = time.Second

// watchDisk has the log tell of a disk that fills while nobody asks, and finds one that
// can be written to again.
func (m *Manager) watchDisk() {
	ticker := time.NewTicker(diskEvery)
	defer ticker.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-ticker.C:
			_ = m.Ready() // which tells
		}
	}
}
