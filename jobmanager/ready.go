package jobmanager

import (
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Ready returns nil while jobs are accepted, and else the reason why they are not.
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
	// While jobs are refused nothing is written, so the end of the trouble is found only by a
	// write.
	err := m.history.write(nil)
	m.ailing.Store(&err)
	return err
}

// reasonNotReady says why no jobs are accepted, as far as is known without writing; "" while
// they are accepted.
func (m *Manager) reasonNotReady() string {
	if full := m.lookAtDisk(); full != "" {
		return full
	}
	if err := m.ailing.Load(); err != nil && *err != nil {
		return wire.Reason(*err)
	}
	return ""
}

// roomToWrite refuses new data while the disk is nearly full, so that running jobs can end
// well.
func (m *Manager) roomToWrite() error {
	if full := m.lookAtDisk(); full != "" {
		return wire.Error(codes.ResourceExhausted, "the job manager takes no jobs: %s", full)
	}
	return nil
}

// fullness is what was last logged about the disk.
type fullness struct {
	mu  sync.Mutex
	why string // why it is too full; "" if it is not
}

// lookAtDisk says how full the disk is if it is too full, and else "". It logs when this begins
// and when it ends.
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

// diskEvery is how often the disk is checked without a request.
const diskEvery = time.Second

// watchDisk checks the disk regularly, so that a full disk is logged, and a disk with room
// again is used, even while nobody asks.
func (m *Manager) watchDisk() {
	ticker := time.NewTicker(diskEvery)
	defer ticker.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-ticker.C:
			_ = m.Ready() // which logs changes
		}
	}
}
