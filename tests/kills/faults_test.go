//go:build linux && !race

package kills

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
)

// store returns the directory of the checkpoints.
func (c *cluster) store() string { return filepath.Join(c.dir, "store", "checkpoints") }

// out returns the directory of the outputs.
func (c *cluster) out() string { return filepath.Join(c.dir, "out") }

// inject makes a fault. It returns the function that ends it, or nil if nothing is to be ended.
func (c *cluster) inject(f fault) (heal func()) {
	switch f.kind {
	case killWorker, stopWorker:
		return c.hitWorker(f)
	case killNode, stopNode, killMachine, stopMachine:
		return c.hitNode(f)
	case killManager:
		c.killManager()
		return c.startManager
	case stopManager:
		return c.freeze(c.manager.Process.Pid)
	case killAll:
		return c.killAll()
	case cutNode:
		c.nodes[f.node].valve.Cut()
		return c.nodes[f.node].valve.Open
	case muteNode:
		c.nodes[f.node].valve.Hold()
		return c.nodes[f.node].valve.Open
	case cutPeers, mutePeers, slowPeers:
		return c.disturbPeers(f)
	case fillStore, fillOutput:
		return c.fill(f.kind)
	case takeStore:
		return c.takeStore()
	}
	require.FailNow(c.t, "no such fault", f.kind)
	return nil
}

// slowRate is the rate of slow connections between workers in bytes per second: an AllReduce of some
// kilobytes takes about as long as the detection of a lost worker.
const slowRate = 4 << 10

// disturbPeers disturbs the connections to the workers of a task manager, also those from its own
// workers.
func (c *cluster) disturbPeers(f fault) (heal func()) {
	peers := c.nodes[f.node].peers
	for _, v := range peers {
		switch f.kind {
		case cutPeers:
			v.Cut()
		case mutePeers:
			v.Hold()
		case slowPeers:
			v.Slow(slowRate)
		}
	}
	return func() {
		for _, v := range peers {
			v.Open()
		}
	}
}

// hitWorker kills or stops the workers of a task manager: those of the fault's node or, if it
// has none, those of the next node that has some.
func (c *cluster) hitWorker(f fault) (heal func()) {
	for i := range c.nodes {
		n := c.nodes[(f.node+i)%len(c.nodes)]
		pids := c.workersOf(n)
		if len(pids) == 0 {
			continue
		}
		c.story.tell("… of %s: %v", n.name, pids)
		if f.kind == killWorker {
			killWorkers(pids)
			return nil
		}
		return c.freeze(pids...)
	}
	c.story.tell("… no worker is there")
	return nil
}

// hitNode kills or stops a task manager, and for a whole machine also its workers.
func (c *cluster) hitNode(f fault) (heal func()) {
	n := c.nodes[f.node]
	var pids []int
	if f.kind == killMachine || f.kind == stopMachine {
		pids = c.workersOf(n)
		c.story.tell("… with the workers %v", pids)
	}
	if f.kind == stopNode || f.kind == stopMachine {
		return c.freeze(append(pids, n.cmd.Process.Pid)...)
	}
	_ = n.cmd.Process.Kill()
	killWorkers(pids)
	_ = n.cmd.Wait()
	return func() { c.startNode(n) }
}

// freeze stops processes. heal lets those continue that are still there.
func (c *cluster) freeze(pids ...int) (heal func()) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	return func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

// killAll kills all processes of the cluster. heal starts the job manager and the task managers
// again.
func (c *cluster) killAll() (heal func()) {
	pids := c.workers()
	_ = c.manager.Process.Kill()
	for _, n := range c.nodes {
		_ = n.cmd.Process.Kill()
	}
	killWorkers(pids)
	_ = c.manager.Wait()
	for _, n := range c.nodes {
		_ = n.cmd.Wait()
	}
	return func() {
		c.startManager()
		for _, n := range c.nodes {
			c.startNode(n)
		}
	}
}

// takeStore renames the directory of the checkpoints. If it is there again when the fault is
// over, because an attempt has made it, what was taken away is lost.
func (c *cluster) takeStore() (heal func()) {
	away := c.store() + ".away"
	if err := os.Rename(c.store(), away); err != nil {
		c.story.tell("… there is no store: %v", err)
		return nil
	}
	c.taken = true
	return func() {
		if err := os.Rename(away, c.store()); err != nil {
			c.story.tell("… the store was made anew")
			require.NoError(c.t, os.RemoveAll(away))
		}
	}
}

// strike makes the faults of a strike, and ends each when its time is over.
func (c *cluster) strike(s strike) {
	type healing struct {
		fault
		heal func()
	}
	var all []healing
	began := time.Now()
	for _, f := range s.faults {
		c.story.tell("%s", f)
		if heal := c.inject(f); heal != nil {
			all = append(all, healing{f, heal})
		}
	}
	slices.SortStableFunc(all, func(a, b healing) int { return int(a.hold - b.hold) })
	for _, h := range all {
		rest := time.NewTimer(h.hold - time.Since(began))
		select {
		case <-rest.C:
		case <-c.t.Context().Done():
		}
		c.story.tell("end of %s", h.kind)
		h.heal()
	}
}

// await waits for the moment of a strike. It returns false if the job ends before.
func (r *run) await(s strike) bool {
	ctx, cancel := context.WithTimeout(r.c.t.Context(), waitLimit)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	saved := len(r.saves.seen())
	for {
		now := r.observer.job()
		if r.reached(s, &now, saved) {
			return true
		}
		if now.ended() {
			return false
		}
		select {
		case <-r.client.ended:
			return false
		case <-ctx.Done():
			require.FailNow(r.c.t, fmt.Sprintf("the job must come to the moment %q, or end", s.moment))
		case <-tick.C:
		}
	}
}

// reached reports whether the job is in the moment of a strike. saved is the number of files
// that had appeared in the store before.
func (r *run) reached(s strike, now *view, saved int) bool {
	switch s.moment {
	case submitted:
		return now.ID != ""
	case deploying:
		return now.State == "deploying"
	case reading:
		return now.State == "running" && now.superstep() == 0
	case iterating:
		return now.superstep() >= s.step
	case saving:
		return len(r.saves.seen()) > saved
	case committing:
		return now.State == "committing"
	case placed:
		return r.outputs.count("rows.csv") > 0
	case recovering:
		return now.State == "restarting" || now.State == "waiting" && now.Attempt > 0
	case finished:
		return now.ended()
	}
	return false
}
