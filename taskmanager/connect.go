package taskmanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/silence"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/taskmanager/core"
)

// registerTimeout bounds how long a job manager may take to answer a registration.
const registerTimeout = 10 * time.Second

// Durations that are used if the job manager sends none, and bounds of the durations that it
// may send.
const (
	defaultHeartbeat = time.Second
	defaultLease     = 10 * time.Second
	leastClock       = time.Millisecond
)

// RefusedError is the error of Run if the job manager has refused the task manager for good.
type RefusedError struct {
	JobManager string // address of the job manager
	Reason     string
}

// Error returns which job manager refused this task manager, and why.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the job manager at %s refuses this task manager: %s", e.JobManager, e.Reason)
}

type link = grpc.BidiStreamingClient[wire.FromTaskManager, wire.ToTaskManager]

// converse connects to the job manager, and connects again whenever the connection breaks. It
// returns nil when the context is done, or when the task manager stops and the Leave was sent
// or cannot be sent. If the job manager refuses the task manager for good, it returns a
// *RefusedError.
func (m *manager) converse(ctx context.Context) error {
	waits := core.NewBackoff(m.Seed)
	for failures := 0; ; failures++ {
		registered, err := m.connection(ctx)
		if registered && err != nil {
			m.broke = wire.Reason(err)
		}
		var refused *RefusedError
		switch {
		case ctx.Err() != nil || m.isStopping():
			return nil
		case errors.As(err, &refused):
			return err
		}
		if registered {
			waits.Reset()
			failures = 0
		}
		wait := waits.Wait()
		if failures == 0 || failures%10 == 9 { // log the first failure, and then every tenth
			m.Logger.Warn("no connection to the job manager, trying again", "address", m.JobManager, "error", wire.Reason(security.ExplainDial(err)))
		}
		select {
		case <-time.After(wait):
		case <-m.stops:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *manager) isStopping() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopping
}

// connection opens a stream, registers the task manager on it, and serves the stream until it
// breaks. It reports whether the job manager accepted the registration.
func (m *manager) connection(ctx context.Context) (registered bool, err error) {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	if !m.begin(cut) {
		return false, errStopping
	}
	defer m.end()
	late := time.AfterFunc(registerTimeout, func() {
		cut(fmt.Errorf("the job manager did not answer the registration within %s", registerTimeout))
	})
	defer late.Stop()
	stream, welcome, err := m.register(ctx)
	if err != nil {
		return false, m.connectionError(ctx, err)
	}
	late.Stop()
	beat := m.acceptRegistration(welcome)
	m.Logger.Info("registered", "job manager", m.JobManager, "cluster", welcome.Cluster, "heartbeat", beat)
	if m.loopbackOnly() {
		m.Logger.Warn("workers here accept connections of this machine only, while the job manager is on another one: a job on several task managers fails unless workers listen on an address that the others reach (--listen)", "listen", m.Advertise)
	}

	heard := make(chan error, 1)
	go func() { heard <- m.listen(stream) }()
	switch err = m.sendLoop(stream, beat, heard); err {
	case nil: // the Leave was sent
		err = stream.CloseSend()
	case io.EOF: // the stream broke; the goroutine that receives returns the reason
		err = nil
	default:
		cut(err)
	}
	if last := <-heard; err == nil {
		err = last
	}
	return true, m.connectionError(ctx, err)
}

// begin records a new connection, which cut breaks. It returns false if the task manager is
// stopping.
func (m *manager) begin(cut context.CancelCauseFunc) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut = cut
	return !m.stopping
}

// end records that the connection has ended. Heartbeats that were sent on the connection will
// not be acknowledged any more.
func (m *manager) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut, m.joined = nil, false
	m.lease.Lost()
}

// connectionError returns an error that says why a connection ended. It is a *RefusedError if the job
// manager would refuse another attempt too.
func (m *manager) connectionError(ctx context.Context, err error) error {
	switch wire.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented:
		return &RefusedError{JobManager: m.JobManager, Reason: wire.Reason(err)}
	}
	if why := context.Cause(ctx); why != nil && why != context.Canceled {
		return why
	}
	if err == io.EOF {
		return errors.New("the job manager ended the connection")
	}
	return err
}

// register opens a stream and registers the task manager on it.
func (m *manager) register(ctx context.Context) (link, *wire.Registered, error) {
	stream, err := m.client.Connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := stream.Send(&wire.FromTaskManager{Register: m.registration()}); err != nil && err != io.EOF {
		return nil, nil, err
	}
	answer, err := stream.Recv()
	switch {
	case err != nil:
		return nil, nil, err
	case answer.Refused != nil:
		return nil, nil, m.refused(answer.Refused)
	case answer.Registered == nil:
		return nil, nil, errors.New("the job manager did not answer the registration with a welcome: is it of another version?")
	}
	return stream, answer.Registered, nil
}

func (m *manager) refused(r *wire.Refused) error {
	if r.Final {
		return &RefusedError{JobManager: m.JobManager, Reason: r.Reason}
	}
	return errors.New(r.Reason)
}

// acceptRegistration adopts the durations that the job manager sent, renews the lease, and
// returns the heartbeat interval. If the job manager was restarted, it repeats what the workers
// have reported; the job manager sends the command to kill workers that it does not take over.
func (m *manager) acceptRegistration(r *wire.Registered) (beat time.Duration) {
	m.mu.Lock()
	before := m.cluster
	m.cluster, m.joined = r.Cluster, true
	limit := max(cmp.Or(m.Lease, r.Lease, defaultLease), leastClock)
	m.lease.Renew(limit)
	m.leased = true
	m.change()
	select {
	case m.renewed <- struct{}{}:
	default:
	}
	m.mu.Unlock()
	if before != "" && before != r.Cluster {
		m.outbox.Repeat()
	}
	return max(cmp.Or(m.Heartbeat, r.Heartbeat, defaultHeartbeat), leastClock)
}

// sendLoop sends heartbeats and the contents of the outbox, until the stream breaks or the
// Leave was sent. heard receives an error when the stream breaks. sendLoop then puts the error
// back into heard and returns io.EOF.
func (m *manager) sendLoop(stream link, beat time.Duration, heard chan error) error {
	ticks := time.NewTicker(beat)
	defer ticks.Stop()
	m.outbox.Beat()
	for {
		message := m.outbox.Pop()
		if message == nil {
			select {
			case <-m.outbox.More:
			case <-ticks.C:
				m.outbox.Beat()
			case err := <-heard:
				heard <- err
				return io.EOF
			}
			continue
		}
		select { // so that heartbeats are sent in time even if there are always other messages to send
		case <-ticks.C:
			m.outbox.Beat()
		default:
		}
		if message.Heartbeat != nil {
			ailing := m.space.Full()
			message.Heartbeat.Ailing, message.Heartbeat.Kept, message.Heartbeat.States = ailing, m.kept.refs(), m.dir.states.jobs()
			if ailing != m.ailing {
				m.ailing = ailing
				if ailing != "" {
					m.Logger.Warn("takes no work", "why", ailing)
				} else {
					m.Logger.Info("takes work again")
				}
			}
			m.mu.Lock()
			m.lease.Beats(message.Heartbeat.Number)
			m.mu.Unlock()
		}
		if err := stream.Send(message); err != nil {
			return err
		}
		if message.Leave != nil {
			return nil
		}
	}
}

// listen receives messages of the job manager and acts on them until the stream breaks.
func (m *manager) listen(stream link) error {
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		switch {
		case message.Ack != nil:
			m.outbox.Acknowledged(message.Ack.Number)
			m.mu.Lock()
			m.lease.Acknowledged(message.Ack.Number)
			m.mu.Unlock()
			m.forgetStates(message.Ack.Over)
		case message.Deploy != nil:
			m.deploy(message.Deploy)
		case message.Worker != nil:
			m.command(message.Worker)
		case message.Refused != nil:
			return m.refused(message.Refused)
		default:
			m.Logger.Warn("the job manager sent a message that this version does not know")
		}
	}
}

// watchLease advances the lease. When the lease has lapsed, the job manager considers the
// workers lost. So watchLease kills them and breaks the connection, and converse connects
// again.
func (m *manager) watchLease(ctx context.Context) {
	begin := time.Now()
	var measure silence.Clock
	var limit time.Duration
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-m.renewed: // the limit may have changed
		case <-ctx.Done():
			return
		}
		m.mu.Lock()
		if m.lease.Limit != limit && m.lease.Limit > 0 {
			limit = m.lease.Limit
			measure = core.NewTurns(limit, time.Since(begin))
			ticks.Reset(measure.Period)
		}
		lapsed := false
		if m.leased {
			m.lease.Tick(measure.Tick(time.Since(begin)))
			lapsed = m.lease.Lapsed()
		}
		cut := m.cut
		if lapsed {
			m.leased = false
		}
		m.mu.Unlock()
		if !lapsed {
			continue
		}
		why := fmt.Sprintf("no message of the job manager came for %s", limit)
		m.Logger.Warn(why + ": killing the workers")
		m.outbox.Forget()
		m.killAll(wire.UnheardFailure, why)
		if cut != nil {
			cut(errors.New(why))
		}
	}
}
