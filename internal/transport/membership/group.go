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

// Membership represents the membership of one process in a group. Its methods may be called
// from any goroutine.
type Membership struct {
	cfg         Config
	table       []Peer
	hosts       []int // rank -> number of the process that hosts it
	link        link
	coordinator *coordinator // the coordinator; nil except in process 0

	start     time.Time
	lastHeard atomic.Int64 // time of the coordinator's last message, measured from start
	watch     silence.Watch
	sampler   *sampler
	stop      chan struct{} // closed by Close
	running   sync.WaitGroup

	mu       sync.Mutex
	err      error         // the group's cause
	failed   chan struct{} // closed when err is set
	reported []error       // errors that this process has reported
	left     chan struct{} // closed when the coordinator has confirmed that this process has left
	closed   bool
}

func newMembership(cfg Config, w welcome, l link, coord *coordinator) *Membership {
	m := &Membership{
		cfg: cfg, table: w.table, hosts: make([]int, cfg.Size), link: l, coordinator: coord,
		start:  time.Now(),
		watch:  silence.NewWatch(time.Duration(w.detection), 0),
		stop:   make(chan struct{}),
		failed: make(chan struct{}),
		left:   make(chan struct{}),
	}
	for p, peer := range w.table {
		for _, r := range peer.Ranks {
			m.hosts[r] = p
		}
	}
	m.sampler = newSampler(cfg, l, m.watch.Beat)
	if coord != nil {
		coord.mu.Lock()
		coord.reportLocal = func() { m.sampler.send(false) }
		coord.mu.Unlock()
	}
	m.running.Go(m.listen)
	if coord == nil {
		m.running.Go(m.beat)
	}
	if cfg.State != nil {
		m.running.Go(func() { m.sampler.watch(m.stop) })
	}
	return m
}

// Table returns the processes of the group by number. The caller owns the result.
func (m *Membership) Table() []Peer {
	table := make([]Peer, len(m.table))
	for i, p := range m.table {
		table[i] = Peer{Ranks: append([]int(nil), p.Ranks...), Address: p.Address}
	}
	return table
}

// HostOf returns the number of the process that hosts a rank, or -1 if there is no such rank.
func (m *Membership) HostOf(rank int) int {
	if rank < 0 || rank >= len(m.hosts) {
		return -1
	}
	return m.hosts[rank]
}

// Failed returns a channel that is closed when the group has failed.
func (m *Membership) Failed() <-chan struct{} { return m.failed }

// Err returns the group's cause, or nil if the group has not failed.
func (m *Membership) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// verdictWait bounds how long Fail waits for the group's cause.
const verdictWait = time.Second

// Fail ends the group because of err, a failure that a rank of this process found. It returns
// the group's cause: the first failure, which may not be err. All processes have the same
// cause, except processes that cannot reach the coordinator: their cause is the failure that
// they themselves know. Fail takes the time of a round trip to the coordinator, but at most
// about a second. If the cause is known already, Fail returns it at once.
//
// If err is a [Disagreement], the coordinator adds the other rank's operation. If necessary, it
// asks the process of the other rank for the operation.
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
		m.sampler.send(true) // this also reports the latest operations of the rank
	}
	m.link.send(report{err, seq})
	timer := time.NewTimer(verdictWait)
	defer timer.Stop()
	select {
	case <-m.failed:
	case <-m.left:
		m.settle(err) // the coordinator ignores reports of a process that has left
	case <-m.stop:
		m.settle(err)
	case <-timer.C:
		m.settle(m.unanswered(err, seq))
	}
	if m.coordinator != nil {
		m.coordinator.flush() // the other processes must get the cause even if the caller now ends its process
	}
	return m.Err()
}

// completed adds to a PeerError the address of the failed rank and, if the reporting rank is in
// this process, the operation of the reporting rank.
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
		f.During = m.sampler.during(f.Reporter)
	}
	return &f
}

// unanswered returns the cause if the coordinator has not answered the report of err. If two
// heartbeats of the coordinator are missing too, the cause is the loss of the coordinator. err
// is then a consequence of this loss; for example, another process that noticed the loss has
// closed its connection. But if messages from the coordinator are still unread, for example
// because this process was stopped, the coordinator does not count as lost.
func (m *Membership) unanswered(err error, seq uint64) error {
	if silent := m.silent(); m.coordinator == nil && silent > 2*m.watch.Beat && !m.link.unread() {
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

// silent returns the time since the coordinator's last message.
func (m *Membership) silent() time.Duration {
	return time.Since(m.start) - time.Duration(m.lastHeard.Load())
}

// coordinatorLost returns the error by which this process reports the loss of process 0.
func (m *Membership) coordinatorLost(reason string, kind error) error {
	e := &PeerError{
		Rank: m.table[0].Ranks[0], Address: m.table[0].Address,
		Reporter: m.cfg.Ranks[0], Reason: reason, Kind: kind,
	}
	for _, r := range m.cfg.Ranks {
		if during := m.sampler.during(r); during != "" {
			e.Reporter, e.During = r, during
			break
		}
	}
	return e
}

// settle sets the group's cause, unless it has been set. If this process has reported an error
// with the same text as cause, settle uses the reported error, which may wrap more errors than
// cause.
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
	if m.coordinator == nil {
		m.cfg.Logger.Error("the group has failed", "group", m.cfg.Group, "cause", cause)
	}
}

// listen reads and handles messages of the coordinator until the link ends.
func (m *Membership) listen() {
	for {
		msg, err := m.link.receive()
		if err != nil {
			if !m.ended() {
				cause := m.coordinatorLost(lossReason(err))
				if errors.Is(err, ErrDamaged) {
					m.link.send(report{cause: cause}) // without the report, other processes would notice only that this connection has ended
				}
				m.settle(cause)
			}
			m.link.end()
			if errors.Is(err, ErrDamaged) {
				m.link.drain(closeWait)
			}
			return
		}
		m.lastHeard.Store(int64(time.Since(m.start)))
		switch msg := msg.(type) {
		case abort:
			m.settle(msg.cause)
		case ask:
			m.sampler.requestAll()
		case bye:
			select {
			case <-m.left:
			default:
				close(m.left)
			}
		}
	}
}

// ended reports whether this process has left the group or closed its membership.
func (m *Membership) ended() bool {
	select {
	case <-m.left:
		return true
	case <-m.stop:
		return true
	default:
		return false
	}
}

// beat sends heartbeats to the coordinator, and sets the cause if the coordinator is silent for
// too long. It does nothing else, so that the heartbeats are never delayed.
func (m *Membership) beat() {
	t := time.NewTicker(m.watch.Period)
	defer t.Stop()
	var sent time.Duration
	var peer silence.Peer
	var heard int64
	for {
		select {
		case <-m.stop:
			return
		case <-m.failed:
			return
		case <-m.left:
			return
		case <-t.C:
		}
		now := time.Since(m.start)
		m.watch.Tick(now)
		if now-sent >= m.watch.Beat {
			sent = now
			m.link.send(beat{})
		}
		if last := m.lastHeard.Load(); last != heard {
			heard = last
			m.watch.Heard(&peer)
		}
		verdict := m.watch.Judge(&peer)
		if verdict != silence.Alive && m.link.unread() {
			m.watch.Heard(&peer)
			continue
		}
		if verdict == silence.Dead {
			cause := m.coordinatorLost(wasSilent(m.silent()), ErrTimeout)
			m.link.send(report{cause: cause}) // if the coordinator continues later, the report says that it was declared dead
			m.settle(cause)
			return
		}
	}
}

// Leave leaves the group without a failure: the ranks of this process will take part in no
// further operation, and ranks that wait for these ranks get a PeerError of kind ErrLeft. Leave
// returns when the coordinator has confirmed that the process has left. In process 0, which has
// the coordinator, it returns when all other processes have left too. If ctx ends before that,
// the group ends, and the remaining processes get a PeerError of kind ErrLeft. If the group has
// failed, or fails meanwhile, Leave returns the cause. Close must still be called.
func (m *Membership) Leave(ctx context.Context) error {
	m.mu.Lock()
	if m.err != nil || m.closed {
		defer m.mu.Unlock()
		return m.err
	}
	m.mu.Unlock()

	m.sampler.send(false)
	m.link.send(goodbye{})
	select {
	case <-m.left:
		return nil
	case <-m.failed:
		if m.ended() {
			return nil // the group failed after the coordinator had confirmed the good-bye
		}
		return m.Err()
	case <-m.stop:
		return errors.New("membership: closed while leaving")
	case <-ctx.Done():
	}
	if m.coordinator != nil {
		m.link.send(goodbye{final: true})
		return fmt.Errorf("membership: left while other processes are in the group: %w", context.Cause(ctx))
	}
	return fmt.Errorf("membership: the coordinator has not answered the good-bye: %w", context.Cause(ctx))
}

// Close ends the membership, and waits until its goroutines have ended. If the process has not
// left and the group has not failed, the other processes consider this process dead.
func (m *Membership) Close() {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		m.running.Wait()
		return
	}
	m.closed = true
	m.mu.Unlock()
	close(m.stop)
	if m.coordinator != nil {
		m.coordinator.close()
	}
	m.link.end()
	done := make(chan struct{})
	go func() { m.running.Wait(); close(done) }()
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	m.link.close()
	<-done
}
