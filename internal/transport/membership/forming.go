package membership

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// handleHello handles the hello h of a new connection. from is the remote address of the
// connection, and via is its local address. Both are invalid for the local process, and on
// networks without IP addresses.
func (c *core) handleHello(now time.Duration, conn int, h hello, from, via netip.Addr) []command {
	if reason := c.checkHello(h); reason != nil {
		c.out = append(c.out, command{conn, refuse{reason}, true})
		return c.takeCommands()
	}
	m := &c.members[h.process]
	*m = member{presence: present, conn: conn, hello: h, from: from.Unmap(), via: via.Unmap(), lastHeard: now}
	c.conns[conn] = h.process
	for i := range c.members {
		if c.members[i].presence == absent {
			c.inform(m, c.missing())
			return c.takeCommands()
		}
	}
	c.form(now)
	return c.takeCommands()
}

// checkHello returns an error if the process with hello h cannot join.
func (c *core) checkHello(h hello) error {
	switch {
	case c.phase == failed:
		return fmt.Errorf("the group has failed: %w", c.cause)
	case h.process < 0 || h.process >= c.processes:
		return fmt.Errorf("there is no process %d in a group of %d processes", h.process, c.processes)
	case c.phase != forming || c.members[h.process].presence != absent:
		return fmt.Errorf("process %d has joined before", h.process)
	}
	if err := c.checkAgreement(h); err != nil {
		c.members[h.process].refused = err.Error()
		return err
	}
	return nil
}

// refuseWithoutSecret handles a connection whose other side did not prove that it knows the
// secret. from is the address of the other side.
func (c *core) refuseWithoutSecret(from string, reason error) []command {
	if c.phase == forming {
		c.lastWithoutSecret = fmt.Sprintf("a process at %s: %v", from, reason)
		c.tellMissing()
	}
	return c.takeCommands()
}

// checkAgreement returns an error if a process disagrees with the coordinator about the group.
func (c *core) checkAgreement(h hello) error {
	switch {
	case h.processes != c.processes:
		return fmt.Errorf("process %d was started for %d processes, process 0 for %d", h.process, h.processes, c.processes)
	case h.size != c.size:
		return fmt.Errorf("process %d was started for %d ranks, process 0 for %d", h.process, h.size, c.size)
	case len(h.ranks) == 0:
		return fmt.Errorf("process %d hosts no rank", h.process)
	}
	for _, r := range h.ranks {
		if r < 0 || r >= c.size {
			return fmt.Errorf("process %d hosts rank %d, which is not in 0..%d", h.process, r, c.size-1)
		}
		if q, ok := c.host(r); ok {
			return fmt.Errorf("rank %d is hosted by process %d and by process %d", r, q, h.process)
		}
	}
	return nil
}

// host returns the number of the process that hosts a rank, and false if it has not joined.
func (c *core) host(rank int) (int, bool) {
	for p := range c.members {
		if m := &c.members[p]; m.presence == present && contains(m.hello.ranks, rank) {
			return p, true
		}
	}
	return 0, false
}

// tickForming informs the joined processes about the missing processes. After the join timeout it
// fails the group.
func (c *core) tickForming(now time.Duration) {
	if now >= c.join {
		c.refuseAll(&textError{fmt.Sprintf("the group is not complete after %v: %s", c.join, c.missing()), ErrTimeout})
		return
	}
	c.tellMissing()
}

// tellMissing informs all joined processes about the missing processes.
func (c *core) tellMissing() {
	missing := c.missing()
	for i := range c.members {
		if m := &c.members[i]; m.presence == present {
			c.inform(m, missing)
		}
	}
}

// inform sends missing, the text about missing processes, to a joined process if it has not got
// this text yet.
func (c *core) inform(m *member, missing string) {
	if missing != m.lastReported {
		m.lastReported = missing
		c.send(m.conn, waiting{missing})
	}
}

// missing returns a text that says which processes have not joined yet, and which processes
// were refused.
func (c *core) missing() string {
	var numbers []int
	var refused []string
	for p := range c.members {
		m := &c.members[p]
		if m.presence == absent {
			numbers = append(numbers, p)
			if m.refused != "" && len(refused) < 3 {
				refused = append(refused, m.refused)
			}
		}
	}
	if c.lastWithoutSecret != "" {
		refused = append(refused, c.lastWithoutSecret)
	}
	s := fmt.Sprintf("waiting for %s of %d: have they started?", list("process", "processes", numbers), c.processes)
	if refused != nil {
		s += " (refused: " + strings.Join(refused, "; ") + ")"
	}
	return s
}

// list returns a text such as "rank 3" or "ranks 3, 5 and 6". It shortens long lists.
func list(singular, plural string, numbers []int) string {
	if len(numbers) == 1 {
		return singular + " " + strconv.Itoa(numbers[0])
	}
	const maxListed = 8
	var b strings.Builder
	b.WriteString(plural)
	for i, n := range numbers {
		switch {
		case i == maxListed:
			fmt.Fprintf(&b, " and %d more", len(numbers)-maxListed)
			return b.String()
		case i == 0:
			b.WriteByte(' ')
		case i == len(numbers)-1:
			b.WriteString(" and ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// refuseAll fails a group that has not formed, and sends the cause to all joined processes.
func (c *core) refuseAll(cause error) {
	c.enter(failed)
	c.cause = afterTransfer(cause)
	for i := range c.members {
		if m := &c.members[i]; m.presence == present {
			c.out = append(c.out, command{m.conn, refuse{c.cause}, m.conn != localConn})
		}
	}
}

// giveUp is called if the coordinator's own process stops waiting for the others, for the given
// reason. It fails the group.
func (c *core) giveUp(reason error) []command {
	if c.phase == forming {
		c.refuseAll(fmt.Errorf("process 0 gave up (%w) %s", reason, c.missing()))
	}
	return c.takeCommands()
}

// form is called when all processes have joined. It forms the group, or fails it if ranks are
// missing or addresses cannot be reached.
func (c *core) form(now time.Duration) {
	ranks, err := c.placement()
	if err == nil {
		err = c.addresses()
	}
	if err != nil {
		c.refuseAll(err)
		return
	}
	w := welcome{make([]Peer, len(c.members)), int64(c.detection)}
	for p := range c.members {
		m := &c.members[p]
		m.lastHeard, m.lastState = now, now
		c.watch.Heard(&m.liveness)
		w.table[p] = Peer{Ranks: m.hello.ranks, Address: m.hello.address}
	}
	if _, err := appendFrame(nil, 0, w); err != nil {
		c.refuseAll(fmt.Errorf("the table of the group is too long: %w", err))
		return
	}
	c.enter(running)
	c.ranks = ranks
	c.lastProgress, c.beatsSent = now, now
	for p := range c.members {
		c.send(c.members[p].conn, w)
	}
}

// placement returns a rankView for each rank, in which only the process that hosts the rank is
// set. It returns an error if a rank has no host.
func (c *core) placement() ([]rankView, error) {
	ranks := make([]rankView, c.size)
	for i := range ranks {
		ranks[i].process = -1
	}
	for p := range c.members {
		for _, r := range c.members[p].hello.ranks {
			ranks[r].process = p
		}
	}
	var orphans []int
	for i := range ranks {
		if ranks[i].process < 0 {
			orphans = append(orphans, i)
		}
	}
	if orphans != nil {
		return nil, fmt.Errorf("no process hosts %s", list("rank", "ranks", orphans))
	}
	return ranks, nil
}

// contains reports whether ranks, which is ascending, contains r.
func contains(ranks []int, r int) bool {
	_, ok := slices.BinarySearch(ranks, r)
	return ok
}
