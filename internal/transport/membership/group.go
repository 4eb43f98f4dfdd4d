package membership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/superstep-ml/superstep/internal/silence"
)

// Membership is a process's part in a group. Its methods may be called from any
// goroutine.
type Membership struct {
	cfg   Config
	table []Peer
	hosts []int // by rank
	link  link
	lead  *coordinator // of process 0 only

	start  time.Time
	heard  atomic.Int64 // when the coordinator was last heard, since start
	beats  silence.Watch
	states *sampler
	stop   chan struct{} // Close was called
	run    sync.WaitGroup

	mu       sync.Mutex
	err      error         // the group's cause
	failed   chan struct{} // closed when err is set
	reported []error       // by this process
	bye      chan struct{} // closed when the coordinator has confirmed our leaving
	closed   bool
}

func newMembership(cfg Config, w welcome, l link, lead *coordinator) *Membership {
	m := &Membership{
		cfg: cfg, table: w.table, hosts: make([]int, cfg.Size), link: l, lead: lead,
		start:  time.Now(),
		beats:  silence.NewWatch(time.Duration(w.detection), 0),
		stop:   make(chan struct{}),
		failed: make(chan struct{}),
		bye:    make(chan struct{}),
	}
	for p, peer := range w.table {
		for _, r := range peer.Ranks {
			m.hosts[r] = p
		}
	}
	m.states = newSampler(cfg, l, m.beats.Beat)
	if lead != nil {
		lead.mu.Lock()
		lead.look = func() { m.states.send(false) }
		lead.mu.Unlock()
	}
	m.run.Go(m.listen)
	if lead == nil {
		m.run.Go(m.beat)
	}
	if cfg.State != nil {
		m.run.Go(func() { m.states.watch(m.stop) })
	}
	return m
}

// Table returns the processes of the group by number, for the caller to keep.
func (m *Membership) Table() []Peer {
	table := make([]Peer, len(m.table))
	for i, p := range m.table {
		table[i] = Peer{Ranks: append([]int(nil), p.Ranks...), Address: p.Address}
	}
	return table
}

// HostOf returns the process that hosts a rank, -1 if there is no such rank.
func (m *Membership) HostOf(rank int) int {
	if rank < 0 || rank >= len(m.hosts) {
		return -1
	}
	return m.hosts[rank]
}

// Failed returns a channel that is closed when the group has failed.
func (m *Membership) Failed() <-chan struct{} { return m.failed }

// Err returns the group's cause, nil as long as the group has not failed.
func (m *Membership) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// verdictWait bounds the wait for the group's cause after a report.
const verdictWait = time.Second

// Fail ends the group for a failure that a rank of this process found, and returns the group's
// cause, which is the first failure. All processes have the same cause, except those that
// cannot reach the coordinator, which use what they know. Fail takes a round trip to the
// coordinator, at most about a second, and no time if the cause is known.
//
// For a [Disagreement] the coordinator knows the other rank's operation, or asks for it.
func (m *Membership) Fail(err error) error {
	if known := m.Err(); known != nil || err == nil {
		return known
	}
	err = m.completed(err)
	m.mu.Lock()
	m.reported = append(m.reported, err)
	m.mu.Unlock()

	seq := uint64(0)
	if e, ok := err.(*MismatchError); ok && e.OtherDoing == "" {
		seq = e.seq
		m.states.send(true) // the latest operations of its rank
	}
	m.link.send(report{err, seq})
	timer := time.NewTimer(verdictWait)
	defer timer.Stop()
	select {
	case <-m.failed:
	case <-m.bye:
		m.settle(err) // its reports are ignored, as it has left
	case <-m.stop:
		m.settle(err)
	case <-timer.C:
		m.settle(m.unanswered(err, seq))
	}
	if m.lead != nil {
		m.lead.flush() // the cause must reach the others even if the caller ends its process now
	}
	return m.Err()
}

// completed adds to an error what this process knows best: the operation of its rank, and the
// address of the other.
func (m *Membership) completed(err error) error {
	peer, ok := err.(*PeerError)
	if !ok || peer.Worker {
		return err
	}
	f := *peer
	if host := m.HostOf(f.Rank); host >= 0 && f.Address == "" {
		f.Address = m.table[host].Address
	}
	if f.During == "" && m.HostOf(f.Reporter) == m.cfg.Process {
		f.During = m.states.during(f.Reporter)
	}
	return &f
}

// unanswered returns the cause for a process whose report the coordinator did not answer. If
// the coordinator also missed two beats, its loss is the cause, and the reported error follows
// from it, say the closed connection of another process that noticed the same. An exception is
// a coordinator whose messages wait to be read, as after a stop of this process.
func (m *Membership) unanswered(err error, seq uint64) error {
	if silent := m.silent(); m.lead == nil && silent > 2*m.beats.Beat && !m.link.unread() {
		return m.coordinatorLost(wasSilent(silent), ErrTimeout)
	}
	if e, ok := err.(*MismatchError); ok && e.OtherDoing == "" {
		f := *e
		if f.OtherDoing = "another operation"; seq != 0 {
			f.OtherDoing = describe(seq, "")
		}
		return &f
	}
	return err
}

// silent returns how long the coordinator has not been heard.
func (m *Membership) silent() time.Duration {
	return time.Since(m.start) - time.Duration(m.heard.Load())
}

// coordinatorLost returns the failure of process 0 as noticed by this process.
func (m *Membership) coordinatorLost(reason string, kind error) error {
	e := &PeerError{
		Rank: m.table[0].Ranks[0], Address: m.table[0].Address,
		Reporter: m.cfg.Ranks[0], Reason: reason, Kind: kind,
	}
	for _, r := range m.cfg.Ranks {
		if during := m.states.during(r); during != "" {
			e.Reporter, e.During = r, during
			break
		}
	}
	return e
}

// settle sets the cause unless there is one. If an error of this process has the same text,
// that error is used: it may wrap more than what was sent.
func (m *Membership) settle(cause error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return
	}
	for _, own := range m.reported {
		if own.Error() == cause.Error() {
			cause = own
		}
	}
	m.err = cause
	close(m.failed)
	if m.lead == nil {
		m.cfg.Logger.Error("the group has failed", "group", m.cfg.Group, "cause", cause)
	}
}

// listen reads messages of the coordinator until the link ends.
func (m *Membership) listen() {
	for {
		msg, err := m.link.receive()
		if err != nil {
			if !m.over() {
				cause := m.coordinatorLost(lossReason(err))
				if errors.Is(err, ErrDamaged) {
					m.link.send(report{cause: cause}) // otherwise the others only notice that this process is gone
				}
				m.settle(cause)
			}
			m.link.end()
			if errors.Is(err, ErrDamaged) {
				m.link.drain(closeWait)
			}
			return
		}
		m.heard.Store(int64(time.Since(m.start)))
		switch msg := msg.(type) {
		case abort:
			m.settle(msg.cause)
		case ask:
			m.states.answer()
		case bye:
			select {
			case <-m.bye:
			default:
				close(m.bye)
			}
		}
	}
}

// over reports whether this process has left or closed.
func (m *Membership) over() bool {
	select {
	case <-m.bye:
		return true
	case <-m.stop:
		return true
	default:
		return false
	}
}

// beat sends signs of life to the coordinator and watches for its own. It does nothing else, so
// that nothing delays it.
func (m *Membership) beat() {
	t := time.NewTicker(m.beats.Period)
	defer t.Stop()
	var sent time.Duration
	var lead silence.Peer
	var heard int64
	for {
		select {
		case <-m.stop:
			return
		case <-m.failed:
			return
		case <-m.bye:
			return
		case <-t.C:
		}
		now := time.Since(m.start)
		m.beats.Tick(now)
		if now-sent >= m.beats.Beat {
			sent = now
			m.link.send(beat{})
		}
		if last := m.heard.Load(); last != heard {
			heard = last
			m.beats.Heard(&lead)
		}
		verdict := m.beats.Judge(&lead)
		if verdict != silence.Alive && m.link.unread() {
			m.beats.Heard(&lead)
			continue
		}
		if verdict == silence.Dead {
			cause := m.coordinatorLost(wasSilent(m.silent()), ErrTimeout)
			m.link.send(report{cause: cause}) // a coordinator that wakes up learns that it was declared dead
			m.settle(cause)
			return
		}
	}
}

// Leave leaves the group in order: the ranks of this process will take part in no further
// operation, and ranks that wait for them get a PeerError of kind ErrLeft. It returns when the
// coordinator has confirmed. In process 0, the coordinator's, it returns when all others have
// left too; if the context ends before that, the group ends, and the remaining processes get
// such an error. If the group has failed, or fails meanwhile, Leave returns the cause. Close
// must still be called.
func (m *Membership) Leave(ctx context.Context) error {
	m.mu.Lock()
	if m.err != nil || m.closed {
		defer m.mu.Unlock()
		return m.err
	}
	m.mu.Unlock()

	m.states.send(false)
	m.link.send(goodbye{})
	select {
	case <-m.bye:
		return nil
	case <-m.failed:
		if m.over() {
			return nil // the failure was found after the good-bye was confirmed
		}
		return m.Err()
	case <-m.stop:
		return errors.New("membership: closed while leaving")
	case <-ctx.Done():
	}
	if m.lead != nil {
		m.link.send(goodbye{final: true})
		return fmt.Errorf("membership: left while other processes are in the group: %w", context.Cause(ctx))
	}
	return fmt.Errorf("membership: the coordinator has not answered the good-bye: %w", context.Cause(ctx))
}

// Close ends this process's part in the group, and waits until its goroutines have ended. If
// the process has not left and the group has not failed, the others take the process for dead.
func (m *Membership) Close() {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		m.run.Wait()
		return
	}
	m.closed = true
	m.mu.Unlock()
	close(m.stop)
	if m.lead != nil {
		m.lead.close()
	}
	m.link.end()
	done := make(chan struct{})
	go func() { m.run.Wait(); close(done) }()
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	m.link.close()
	<-done
}
