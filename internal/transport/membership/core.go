package membership

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/silence"
)

// A core makes the decisions of the coordinator: which processes may join, which are dead,
// which ranks disagree, and what the first cause is. It is a function of the events and times
// that it is given; it has no goroutine, clock, socket or lock. Times count from the start of
// the group and never decrease.
//
// The phases of a group:
//
//	          all joined            a report that lacks the other side's words
//	forming ─────────────► running ───────────────────────────────► deciding
//	   │                    │    │                                      │
//	   │ gave up, timed     │    │ all said good-bye                    │ answered,
//	   │ out, lost one      │    └──────────────► ended                 │ or too late
//	   ▼                    ▼                                           ▼
//	 failed ◄───────────────┴───────────────────────────────────────────┘
//
// The end of a group is decided once: nothing leaves failed or ended.
type core struct {
	settings
	phase             phase
	cause             error       // in failed
	asked             question    // in deciding
	members           []member    // by process
	conns             map[int]int // connection → its process
	out               []command   // commands of the event being processed
	watch             silence.Watch
	beatsSent         time.Duration // when beats were last sent
	lastWithoutSecret string        // the last connection refused for lack of the secret, and the reason

	ranks  []standing             // by rank, from running on
	recent [recentOps]observation // operations seen lately, at their number modulo
	moved  time.Duration          // when some rank last made progress
	leaver int                    // the rank that left after the fewest operations, or -1
}

// settings is the configuration of the coordinator.
type settings struct {
	processes int
	size      int
	detection time.Duration
	stall     time.Duration // 0: a group may stand still
	join      time.Duration
}

// phase is the phase of a group.
type phase uint8

const (
	forming phase = iota
	running
	deciding
	failed
	ended
)

// phases says which phase may follow which.
var phases = [...][]phase{
	forming:  {running, failed},
	running:  {deciding, failed, ended},
	deciding: {failed},
	failed:   nil,
	ended:    nil,
}

func (p phase) String() string {
	return [...]string{"forming", "running", "deciding", "failed", "ended"}[p]
}

// member is one process.
type member struct {
	presence
	conn         int
	hello        hello
	from, via    netip.Addr    // the far and near address of its connection; invalid for process 0
	heard        time.Duration // when its last message came
	liveness     silence.Peer  // whether it is silent
	sampled      time.Duration // when its last state came
	lastReported string        // the missing processes, as last reported
	refused      string        // why a process with this number was refused, if one was
}

// presence says whether a process takes part.
type presence uint8

const (
	absent presence = iota
	present
	left // with a good-bye
)

// standing is the state of a rank, as far as is known.
type standing struct {
	process  int
	seq      uint64 // operations begun
	left     bool   // it, or its whole process, has left: it begins no more operations
	inside   bool   // in the last one
	hash     uint64 // hash of the last operation seen, with its text
	text     string
	progress uint64
	texts    texts
	begun    [RecentOps]pastOp // without texts, at their number modulo
}

// note records an operation that the rank has begun.
func (r *standing) note(seq, hash uint64) { r.begun[seq%RecentOps] = pastOp{seq: seq, hash: hash} }

// did returns the text of the operation that the rank has begun under a number, "" if it is not
// known.
func (r *standing) did(seq uint64) string {
	b := &r.begun[seq%RecentOps]
	if b.seq != seq {
		return ""
	}
	text, _ := r.texts.of(b.hash)
	return text
}

// heard returns the text of an operation, which came now or with an earlier state.
func (r *standing) heard(hash uint64, text string) string {
	if text != "" {
		r.texts.add(hash, text)
		return text
	}
	text, _ = r.texts.of(hash)
	return text
}

// local is the connection of the coordinator's own process. It cannot be lost, and its silence
// is not measured.
const local = 0

// command is what the shell does for the core: send to a connection, then, perhaps,
// end it.
type command struct {
	conn    int
	message message // nil: nothing
	end     bool
}

func newCore(s settings) *core {
	return &core{
		settings: s,
		members:  make([]member, s.processes),
		conns:    make(map[int]int),
		watch:    silence.NewWatch(s.detection, 0),
		leaver:   -1,
	}
}

// enter changes the phase.
func (c *core) enter(p phase) {
	if !slices.Contains(phases[c.phase], p) {
		panic(fmt.Sprintf("membership: a group cannot go from %v to %v", c.phase, p))
	}
	c.phase = p
}

// take returns the commands of the event that has been handled.
func (c *core) take() []command {
	out := c.out
	c.out = nil
	return out
}

func (c *core) send(conn int, m message) { c.out = append(c.out, command{conn: conn, message: m}) }

// receive handles a message other than a hello. Messages on a connection without a present
// process are ignored, say of a process that was declared dead and woke up.
func (c *core) receive(now time.Duration, conn int, m message) []command {
	p, ok := c.conns[conn]
	if !ok {
		return nil
	}
	from := &c.members[p]
	from.heard = now
	c.watch.Heard(&from.liveness)
	switch m := m.(type) {
	case state:
		if c.phase == running || c.phase == deciding {
			c.learn(now, p, m)
		}
	case report:
		if c.phase == running {
			c.reported(now, p, m)
		}
	case goodbye:
		if c.phase == running || c.phase == deciding {
			c.leave(now, p, m.final)
		}
	}
	return c.take()
}

// lose handles the end of a connection. The reason completes "rank 3 ..."; kind is its error,
// or nil.
func (c *core) lose(now time.Duration, conn int, reason string, kind error) []command {
	p, ok := c.conns[conn]
	if !ok {
		return nil
	}
	delete(c.conns, conn)
	switch c.phase {
	case forming:
		m, reporter := &c.members[p], 0
		if own := c.members[0].hello.ranks; len(own) > 0 { // otherwise process 0 has not arrived itself
			reporter = own[0]
		}
		c.refuseAll(&PeerError{
			Rank: m.hello.ranks[0], Address: m.hello.address,
			Reporter: reporter, Reason: fmt.Sprintf("%s while the group was forming (%s)", reason, c.missing()), Kind: kind,
		})
	case running:
		c.endByDeath(p, reason, kind)
	case deciding:
		if p == c.asked.process {
			c.decide()
		}
	}
	return c.take()
}

// tick handles the passing of time; it is due every watch.Period.
func (c *core) tick(now time.Duration) []command {
	passed := c.watch.Gap(now, 0)
	counts := c.watch.Tick(now)
	if passed > c.watch.Beat {
		c.moved = max(c.moved, now) // time in which this process did not run does not count
	} else {
		c.moved += passed - counts // nor does time without turns
	}
	switch c.phase {
	case forming:
		c.wait(now)
	case running:
		c.beat(now)
		c.listen(now)
		if c.phase == running {
			c.progress(now)
		}
	case deciding:
		c.beat(now)
		if now >= c.asked.until {
			c.decide()
		}
	}
	return c.take()
}

// suspects lists the connections on which nothing has been heard for a while.
func (c *core) suspects() []int {
	var conns []int
	for i := range c.members {
		if m := &c.members[i]; m.presence == present && m.conn != local && c.watch.Judge(&m.liveness) != silence.Alive {
			conns = append(conns, m.conn)
		}
	}
	return conns
}

// unread handles that unread bytes wait on a connection.
func (c *core) unread(conn int) {
	if p, ok := c.conns[conn]; ok {
		c.watch.Heard(&c.members[p].liveness)
	}
}

// beat tells the others that this process is alive.
func (c *core) beat(now time.Duration) {
	if now-c.beatsSent < c.watch.Beat {
		return
	}
	c.beatsSent = now
	for i := range c.members {
		if m := &c.members[i]; m.presence == present && m.conn != local {
			c.send(m.conn, beat{})
		}
	}
}

// listen declares dead a process that has been silent for too long, the first by number.
func (c *core) listen(now time.Duration) {
	dead := -1
	for p := range c.members {
		m := &c.members[p]
		if m.presence != present || m.conn == local {
			continue
		}
		if dead < 0 && c.watch.Judge(&m.liveness) == silence.Dead {
			dead = p
		}
	}
	if dead >= 0 {
		m := &c.members[dead]
		c.endByDeath(dead, wasSilent(now-m.heard), ErrTimeout)
		delete(c.conns, m.conn)
		c.out = append(c.out, command{conn: m.conn, end: true})
	}
}

// wasSilent returns the reason for declaring a silent process dead.
func wasSilent(d time.Duration) string {
	unit := time.Millisecond
	if d >= time.Second {
		unit *= 100
	}
	return fmt.Sprintf("was silent for %v", d.Truncate(unit))
}

// replaced ends the group, as a later attempt of it has begun in this process.
func (c *core) replaced(attempt uint32) []command {
	cause := fmt.Errorf("%w, %d", ErrReplaced, attempt)
	switch c.phase {
	case forming:
		c.refuseAll(cause)
	case running, deciding:
		c.abort(cause)
	}
	return c.take()
}

// endByDeath ends the group because a process died, as the coordinator noticed. The error names as
// reporter a rank that is inside an operation, if there is one.
func (c *core) endByDeath(p int, reason string, kind error) {
	e := &PeerError{
		Rank: c.members[p].hello.ranks[0], Address: c.members[p].hello.address,
		Reporter: c.members[0].hello.ranks[0], Reason: reason, Kind: kind,
	}
	for i := range c.ranks {
		r := &c.ranks[i]
		if r.inside && !r.left && r.process != p {
			e.Reporter, e.During = i, describe(r.seq, r.text)
			break
		}
	}
	c.abort(e)
}

// abort ends the group for a cause and tells all processes that take part. It also tells the
// coordinator's own process, which waits for the others even if it has left.
func (c *core) abort(cause error) {
	c.enter(failed)
	c.cause = received(cause)
	for i := range c.members {
		if m := &c.members[i]; m.presence == present || m.conn == local {
			c.send(m.conn, abort{c.cause})
		}
	}
}

// reported handles the first failure that a process reports.
func (c *core) reported(now time.Duration, p int, m report) {
	switch e := m.cause.(type) {
	case *PeerError:
		if e.Worker { // the process itself knows best
			c.abort(e)
			return
		}
		c.abort(c.completed(p, e))
	case *MismatchError:
		if e.OtherDoing != "" {
			c.abort(e)
			return
		}
		if !c.known(e.Other) {
			f := *e
			f.OtherDoing = describe(m.seq, "")
			c.abort(&f)
			return
		}
		c.enter(deciding)
		c.asked = question{*e, m.seq, c.ranks[e.Other].process, now + answerWait}
		if c.knows() || c.members[c.asked.process].presence != present {
			c.decide()
			return
		}
		c.send(c.members[c.asked.process].conn, ask{e.Other})
	default:
		c.abort(m.cause)
	}
}

// known reports whether there is such a rank.
func (c *core) known(rank int) bool { return rank >= 0 && rank < c.size }

// completed returns what a process reported about a rank, with what else is known.
func (c *core) completed(p int, e *PeerError) *PeerError {
	f := *e
	if !c.known(f.Rank) {
		return &f
	}
	host := &c.members[c.ranks[f.Rank].process]
	gone := c.ranks[f.Rank].left
	if f.Address == "" {
		f.Address = host.hello.address
	}
	if !c.known(f.Reporter) || c.ranks[f.Reporter].process != p {
		f.Reporter = c.members[p].hello.ranks[0]
	}
	if r := &c.ranks[f.Reporter]; f.During == "" && r.inside {
		f.During = describe(r.seq, r.text)
	}
	// The end of a connection looks the same after a good-bye and after a crash. A process that
	// leaves says so here before it closes anything.
	switch {
	case gone && (f.Kind == nil || f.Kind == ErrLeft):
		f.Kind, f.Reason = ErrLeft, ErrLeft.Error()
	case f.Kind == ErrLeft && c.ranks[f.Rank].process != p:
		f.Kind = nil
	}
	return &f
}
