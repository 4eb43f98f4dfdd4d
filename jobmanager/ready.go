package jobmanager

import (
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Ready returns nil if jobs are accepted, and otherwise the reason why they are not.
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
	// While jobs are refused, nothing else is written to the history. So only this write can
	// find out whether writing is possible again.
	err := m.history.write(nil)
	m.ailing.Store(&err)
	return err
}

// reasonNotReady returns why no jobs are accepted, or "" if they are accepted. Unlike Ready, it
// does not try to write to the disk.
func (m *Manager) reasonNotReady() string {
	if full := m.lookAtDisk(); full != "" {
		return full
	}
	if err := m.ailing.Load(); err != nil && *err != nil {
		return wire.Reason(*err)
	}
	return ""
}

// roomToWrite returns an error if the disk is nearly full. New data is then refused, so that
// the remaining space is left to running jobs.
func (m *Manager) roomToWrite() error {
	if full := m.lookAtDisk(); full != "" {
		return wire.Error(codes.ResourceExhausted, "the job manager takes no jobs: %s", full)
	}
	return nil
}

// fullness records what was last logged about the free space on the disk.
type fullness struct {
	mu  sync.Mutex
	why string // why the disk is too full; "" if it has enough free space
}

// lookAtDisk returns text about the free space if the disk is too full, and "" otherwise. It
// writes to the log when the disk becomes too full, and when it has enough free space again.
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

// diskEvery is the interval at which watchDisk checks the disk.
const diskEvery = time.Second

// watchDisk checks the disk regularly, so that changes are noticed and logged even if nobody
// submits a job.
func (m *Manager) watchDisk() {
	ticker := time.NewTicker(diskEvery)
	defer ticker.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-ticker.C:
			_ = m.Ready() // Ready logs changes
		}
	}
}
