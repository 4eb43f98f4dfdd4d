package membership

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/silence"
)

// A core makes the decisions of the coordinator: which processes may join, which processes are
// dead, which ranks disagree, and which failure is the cause. Its commands are a function of
// the events and times that the caller passes to it; it has no goroutine, clock, socket or
// lock. Times are measured from the start of the group and never decrease.
//
// These are the phases of a group:
//
//	          all joined          mismatch, other operation not known
//	forming ─────────────► running ───────────────────────────────► deciding
//	   │                    │    │                                      │
//	   │ gave up, timed out,│    │ all have left                        │ answered,
//	   │ or lost a process  │    └──────────────► ended                 │ or too late
//	   ▼                    ▼                                           ▼
//	 failed ◄───────────────┴───────────────────────────────────────────┘
//
// The phases failed and ended are final.
type core struct {
	settings
	phase             phase
	cause             error       // the group's cause; set in phase failed
	asked             question    // the mismatch to decide; set in phase deciding
	members           []member    // process number -> process
	conns             map[int]int // number of a connection -> its process
	out               []command   // commands for the event that is being handled
	watch             silence.Watch
	beatsSent         time.Duration // time at which heartbeats were last sent
	lastWithoutSecret string        // describes the last connection that was refused because of the secret, with the reason

	ranks        []rankView             // indexed by rank; set when the phase running begins
	recent       [recentOps]observation // the latest operations that were reported; operation seq is at index seq modulo recentOps
	lastProgress time.Duration          // time at which a rank last made progress
	leaver       int                    // the rank with the smallest seq among the ranks that have left; -1 if no rank has left
}

// settings is the configuration of the coordinator.
type settings struct {
	processes int
	size      int
	detection time.Duration
	stall     time.Duration // the stall timeout; 0 means no limit
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

// phases has, for each phase, the phases that may follow it.
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

// member has what the coordinator knows about one process.
type member struct {
	presence
	conn         int
	hello        hello
	from, via    netip.Addr    // remote and local address of the process's connection; invalid for process 0
	lastHeard    time.Duration // time of the process's last message
	liveness     silence.Peer  // state for silence.Watch
	lastState    time.Duration // time of the process's last state message
	lastReported string        // text about missing processes that was last sent to the process
	refused      string
}

// presence says whether a process takes part in the group.
type presence uint8

const (
	absent presence = iota
	present
	left // the process has sent a good-bye
)

// rankView is the state of a rank, as far as the coordinator knows it.
type rankView struct {
	process  int
	seq      uint64 // number of the latest operation that the rank has begun
	left     bool   // the rank or its whole process has left: the rank begins no more operations
	inside   bool   // the rank is in operation seq
	hash     uint64 // hash and text describe the last operation in which the rank was reported
	text     string
	progress uint64
	texts    texts
	begun    [RecentOps]pastOp // operations that the rank has begun, without texts; operation seq is at index seq modulo RecentOps
}

// noteBegun records an operation that the rank has begun.
func (r *rankView) noteBegun(seq, hash uint64) { r.begun[seq%RecentOps] = pastOp{seq: seq, hash: hash} }

// begunText returns the text of operation seq, which the rank has begun, or "" if the text is not
// known.
func (r *rankView) begunText(seq uint64) string {
	b := &r.begun[seq%RecentOps]
	if b.seq != seq {
		return ""
	}
	text, _ := r.texts.lookup(b.hash)
	return text
}

// resolveText returns the text of the operation with the given hash. text is the text in the
// state message that is being handled; it is "" if an earlier state message had the text.
func (r *rankView) resolveText(hash uint64, text string) string {
	if text != "" {
		r.texts.add(hash, text)
		return text
	}
	text, _ = r.texts.lookup(hash)
	return text
}

// local is the number of the connection of the coordinator's own process. This connection
// cannot be lost, and silence on it is not measured.
const localConn = 0

// command is an action that the coordinator carries out for the core: it sends message on conn,
// and then, if end is set, ends conn.
type command struct {
	conn    int
	message message // message to send; nil if there is none
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

// enter changes the phase to p. It panics if phases does not allow the change.
func (c *core) enter(p phase) {
	if !slices.Contains(phases[c.phase], p) {
		panic(fmt.Sprintf("membership: a group cannot go from %v to %v", c.phase, p))
	}
	c.phase = p
}

// takeCommands returns the commands for the event that has been handled, and clears them.
func (c *core) takeCommands() []command {
	out := c.out
	c.out = nil
	return out
}

func (c *core) send(conn int, m message) { c.out = append(c.out, command{conn: conn, message: m}) }

// receive handles a message other than a hello. It ignores a message on a connection whose
// process is not present, such as a process that was declared dead and continues to run.
func (c *core) receive(now time.Duration, conn int, m message) []command {
	p, ok := c.conns[conn]
	if !ok {
		return nil
	}
	from := &c.members[p]
	from.lastHeard = now
	c.watch.Heard(&from.liveness)
	switch m := m.(type) {
	case state:
		if c.phase == running || c.phase == deciding {
			c.handleState(now, p, m)
		}
	case report:
		if c.phase == running {
			c.handleReport(now, p, m)
		}
	case goodbye:
		if c.phase == running || c.phase == deciding {
			c.handleGoodbye(now, p, m.final)
		}
	}
	return c.takeCommands()
}

// lose handles the end of a connection. reason is a text that follows "rank 3 " in the error.
// kind is the Kind of the error, or nil.
func (c *core) lose(now time.Duration, conn int, reason string, kind error) []command {
	p, ok := c.conns[conn]
	if !ok {
		return nil
	}
	delete(c.conns, conn)
	switch c.phase {
	case forming:
		m, reporter := &c.members[p], 0
		if own := c.members[0].hello.ranks; len(own) > 0 { // otherwise process 0 itself has not joined yet
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
	return c.takeCommands()
}

// tick handles the passing of time. The coordinator calls it every watch.Period.
func (c *core) tick(now time.Duration) []command {
	passed := c.watch.Gap(now, 0)
	counted := c.watch.Tick(now)
	if passed > c.watch.Beat {
		c.lastProgress = max(c.lastProgress, now) // this process did not run, so the time until now does not count as lack of progress
	} else {
		c.lastProgress += passed - counted // the part of a shorter gap that exceeds two periods does not count
	}
	switch c.phase {
	case forming:
		c.tickForming(now)
	case running:
		c.sendHeartbeats(now)
		c.checkSilence(now)
		if c.phase == running {
			c.checkStall(now)
		}
	case deciding:
		c.sendHeartbeats(now)
		if now >= c.asked.until {
			c.decide()
		}
	}
	return c.takeCommands()
}

// suspects returns the connections of processes that have been silent for some time.
func (c *core) suspects() []int {
	var conns []int
	for i := range c.members {
		if m := &c.members[i]; m.presence == present && m.conn != localConn && c.watch.Judge(&m.liveness) != silence.Alive {
			conns = append(conns, m.conn)
		}
	}
	return conns
}

// noteUnread records that connection conn has unread bytes, so that its process does not count as
// silent.
func (c *core) noteUnread(conn int) {
	if p, ok := c.conns[conn]; ok {
		c.watch.Heard(&c.members[p].liveness)
	}
}

// sendHeartbeats sends a heartbeat to all other present processes if one is due.
func (c *core) sendHeartbeats(now time.Duration) {
	if now-c.beatsSent < c.watch.Beat {
		return
	}
	c.beatsSent = now
	for i := range c.members {
		if m := &c.members[i]; m.presence == present && m.conn != localConn {
			c.send(m.conn, beat{})
		}
	}
}

// checkSilence ends the group if a process has been silent for too long. If several processes
// have been silent for too long, it declares the process with the lowest number dead.
func (c *core) checkSilence(now time.Duration) {
	dead := -1
	for p := range c.members {
		m := &c.members[p]
		if m.presence != present || m.conn == localConn {
			continue
		}
		if dead < 0 && c.watch.Judge(&m.liveness) == silence.Dead {
			dead = p
		}
	}
	if dead >= 0 {
		m := &c.members[dead]
		c.endByDeath(dead, wasSilent(now-m.lastHeard), ErrTimeout)
		delete(c.conns, m.conn)
		c.out = append(c.out, command{conn: m.conn, end: true})
	}
}

// wasSilent returns, as text for errors, the reason why a process that was silent for d is
// declared dead.
func wasSilent(d time.Duration) string {
	unit := time.Millisecond
	if d >= time.Second {
		unit *= 100
	}
	return fmt.Sprintf("was silent for %v", d.Truncate(unit))
}

// replaced ends the group because a later attempt of the group has begun in this process.
func (c *core) replaced(attempt uint32) []command {
	cause := fmt.Errorf("%w, %d", ErrReplaced, attempt)
	switch c.phase {
	case forming:
		c.refuseAll(cause)
	case running, deciding:
		c.abort(cause)
	}
	return c.takeCommands()
}

// endByDeath ends the group because process p died. The reporter in the error is a rank that is
// in an operation, or else the first rank of process 0.
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

// abort ends the group and sends its cause to all present processes. It also sends the cause to
// the coordinator's own process, which waits for the others even if it has left.
func (c *core) abort(cause error) {
	c.enter(failed)
	c.cause = afterTransfer(cause)
	for i := range c.members {
		if m := &c.members[i]; m.presence == present || m.conn == localConn {
			c.send(m.conn, abort{c.cause})
		}
	}
}

// handleReport handles a report of a failure by process p. It is the first failure that is
// reported in the group.
func (c *core) handleReport(now time.Duration, p int, m report) {
	switch e := m.cause.(type) {
	case *PeerError:
		if e.Worker { // such an error has all facts: the process has more information than the coordinator
			c.abort(e)
			return
		}
		c.abort(c.completed(p, e))
	case *MismatchError:
		if e.OtherDoing != "" {
			c.abort(e)
			return
		}
		if !c.validRank(e.Other) {
			f := *e
			f.OtherDoing = describe(m.seq, "")
			c.abort(&f)
			return
		}
		c.enter(deciding)
		c.asked = question{*e, m.seq, c.ranks[e.Other].process, now + answerWait}
		if c.knowsOther() || c.members[c.asked.process].presence != present {
			c.decide()
			return
		}
		c.send(c.members[c.asked.process].conn, ask{e.Other})
	default:
		c.abort(m.cause)
	}
}

// validRank reports whether the group has a rank with this number.
func (c *core) validRank(rank int) bool { return rank >= 0 && rank < c.size }

// completed returns the error e, which process p has reported, with additional facts that the
// coordinator knows.
func (c *core) completed(p int, e *PeerError) *PeerError {
	f := *e
	if !c.validRank(f.Rank) {
		return &f
	}
	host := &c.members[c.ranks[f.Rank].process]
	gone := c.ranks[f.Rank].left
	if f.Address == "" {
		f.Address = host.hello.address
	}
	if !c.validRank(f.Reporter) || c.ranks[f.Reporter].process != p {
		f.Reporter = c.members[p].hello.ranks[0]
	}
	if r := &c.ranks[f.Reporter]; f.During == "" && r.inside {
		f.During = describe(r.seq, r.text)
	}
	// A connection ends in the same way after a good-bye and after a crash. But a process that
	// leaves sends a good-bye to the coordinator before it closes any connection.
	switch {
	case gone && (f.Kind == nil || f.Kind == ErrLeft):
		f.Kind, f.Reason = ErrLeft, ErrLeft.Error()
	case f.Kind == ErrLeft && c.ranks[f.Rank].process != p:
		f.Kind = nil
	}
	return &f
}
