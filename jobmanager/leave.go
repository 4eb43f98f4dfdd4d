package jobmanager

import (
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// leaving passes the announcement of a task manager that it leaves on to the core.
func (m *Manager) leaving(c *conn, l *wire.Leaving) {
	m.mu.Lock()
	defer m.mu.Unlock()
	leave, stay := m.core.LeavingOn(c.id)
	m.decide(core.LeaveAnnounced{Conn: c.id, Leaving: *l})
	m.logLeaving(c, l, leave, stay)
}

// registered passes a registration on to the core.
func (m *Manager) registered(c *conn, r *wire.Register) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.decide(core.Registered{Conn: c.id, Register: *r})
	if r.Leaving != nil {
		leave, stay := m.core.LeavingOn(c.id)
		m.logLeaving(c, r.Leaving, leave, stay)
	}
}

// logLeaving logs that a task manager leaves, with the jobs there that are saved and go on elsewhere,
// and those that stay for the time being.
func (m *Manager) logLeaving(c *conn, l *wire.Leaving, leave, stay []wire.JobID) {
	m.log.Info("a task manager leaves", "name", clip(c.peer().Name), "reason", clip(l.Reason), "within", l.Within, "jobs that go on elsewhere", leave, "jobs that stay until then", stay)
}
