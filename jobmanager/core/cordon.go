package core

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// A cordoned task manager gets no new workers, and the workers that run there go on. A cordon
// belongs to the name of a task manager. So it also applies to a task manager that registers
// later under this name, whether it is the same process or not. The shell records a cordon
// before it passes Cordoned, and passes all recorded cordons to New. So after a restart of the
// job manager the same task managers are cordoned. A drain (move.go) is recorded as part of the cordon.

// Cordoned says that the task managers of a name are cordoned, and that this is on disk.
type Cordoned struct {
	TaskManager string
	Cordon      wire.Cordon
}

// Uncordoned says that the task managers of a name are not cordoned any more, and that this is
// on disk.
type Uncordoned struct {
	TaskManager string
}

func (Cordoned) event()   {}
func (Uncordoned) event() {}

func (c *Core) cordoned(e Cordoned) {
	c.cordons[e.TaskManager], c.rethink = e.Cordon, true
}

func (c *Core) uncordoned(e Uncordoned) {
	delete(c.cordons, e.TaskManager)
	c.rethink = true
}

// Cordon returns the cordon of the task managers of a name, or nil if they are not cordoned.
func (c *Core) Cordon(name string) *wire.Cordon {
	if cordon, ok := c.cordons[name]; ok {
		return &cordon
	}
	return nil
}

// NextCordon returns the cordon that the task managers of a name have after a request at the
// given time to cordon them. If they are cordoned already, the time of their cordon stays, and a
// request without a reason does not remove the reason.
func (c *Core) NextCordon(name, reason string, at time.Time) wire.Cordon {
	next := wire.Cordon{Reason: reason, Since: at}
	if before := c.Cordon(name); before != nil {
		next = *before
		next.Reason = cmp.Or(reason, before.Reason)
	}
	return next
}

// NextDrain returns the cordon that the task managers of a name have after a request at the given time to drain
// them. within is the time after which jobs leave that could not be saved until then; 0 means that they stay until
// they are saved or have ended. An earlier time limit stays.
func (c *Core) NextDrain(name, reason string, within time.Duration, at time.Time) wire.Cordon {
	next := c.NextCordon(name, reason, at)
	next.Drained = true
	if by := at.Add(within); within > 0 && (next.By.IsZero() || by.Before(next.By)) {
		next.By = by
	}
	return next
}

// TaskManagerNames returns the names that TaskManagers returns, sorted and without duplicates.
func (c *Core) TaskManagerNames() []string {
	all := slices.Collect(maps.Keys(c.cordons))
	for _, list := range [][]*taskManager{c.order, c.gone} {
		for _, n := range list {
			all = append(all, n.Name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// CordonReply returns the answer to a request to cordon or uncordon the task managers of a name,
// without Changed.
func (c *Core) CordonReply(name string) wire.CordonReply {
	r := wire.CordonReply{TaskManager: name, Cordon: c.Cordon(name)}
	for _, n := range c.order {
		if n.Name == name {
			r.Registered++
			r.Workers += len(n.workers)
		}
		if o := c.offer(n); n.state == TaskManagerAlive && !o.Cordoned && o.Ailing == "" {
			r.Slots += n.Slots
		}
	}
	return r
}

// absent returns, for each cordoned name that no task manager in all has, an entry that shows
// the cordon. They are sorted by name.
func (c *Core) absent(all []wire.TaskManagerInfo) []wire.TaskManagerInfo {
	var absent []wire.TaskManagerInfo
	for _, name := range slices.Sorted(maps.Keys(c.cordons)) {
		if !slices.ContainsFunc(all, func(n wire.TaskManagerInfo) bool { return n.Name == name }) {
			absent = append(absent, wire.TaskManagerInfo{Name: name, State: wire.TaskManagerAbsent, Cordon: c.Cordon(name)})
		}
	}
	return absent
}
