package jobmanager

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// maxQueued bounds the number of messages that wait to be sent to one task manager. If more
// messages wait, the task manager has stopped reading, and it is disconnected.
const maxQueued = 8192

// registerWithin bounds the time from the opening of a connection to the registration on it.
const registerWithin = 10 * time.Second

// conn is the connection of one task manager. Messages to the task manager wait in a queue, so
// that the core, which runs under the lock, never waits for a network.
type conn struct {
	id int

	mu      sync.Mutex
	queue   []outgoing
	ending  bool          // the connection must end after the queue has been sent
	reason  string        // why the connection was dropped
	wake    chan struct{} // buffer of one: has an element when there may be something to do
	dropped chan struct{}
	reached bool          // the port of its presence was reached
	who     wire.Register // the task manager's registration without Running; zero before it has registered
}

// introduce records r, the registration of the task manager at the other end of the connection.
func (c *conn) introduce(r wire.Register) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Running = nil
	c.who = r
}

// peer returns the registration of the task manager at the other end of the connection.
func (c *conn) peer() wire.Register {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.who
}

// showsPresence reports whether the port of the task manager's presence was reached.
func (c *conn) showsPresence() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reached
}

// outgoing is a message to a task manager. If it deploys a worker, the method complete makes
// the worker's credentials from credits, and adds them before the message is sent.
type outgoing struct {
	message wire.ToTaskManager
	credits *attempt
}

// push adds a message to the queue, or drops the connection if the queue is full.
func (c *conn) push(out outgoing) {
	c.mu.Lock()
	full := len(c.queue) >= maxQueued
	if !full && !c.ending {
		c.queue = append(c.queue, out)
	}
	c.mu.Unlock()
	if full {
		c.drop("did not read what it was sent")
		return
	}
	c.signal()
}

// finish ends the connection after the queued messages have been sent.
func (c *conn) finish() {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	c.signal()
}

func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// drop ends the connection without sending the queued messages. reason completes the sentence
// "task manager X ...".
func (c *conn) drop(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == "" {
		c.reason = reason
		close(c.dropped)
	}
}

// clip shortens text that was received from a task manager, for the log.
func clip(text string) string { return text[:min(len(text), 100)] }

// take removes and returns the queued messages, and reports whether the connection must end
// after them.
func (c *conn) take() (queue []outgoing, ending bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	queue, c.queue = c.queue, nil
	return queue, c.ending
}

// Connect handles the connection of a task manager until it ends.
func (m *Manager) Connect(stream wire.BidiStream[wire.FromTaskManager, wire.ToTaskManager]) error {
	c := &conn{wake: make(chan struct{}, 1), dropped: make(chan struct{})}
	m.mu.Lock()
	m.last++
	c.id = m.last
	m.conns[c.id] = c
	m.mu.Unlock()

	registered := make(chan struct{})
	heard, said := make(chan error, 1), make(chan error, 1)
	m.handled.Go(func() { heard <- m.hear(c, stream, registered) })
	m.handled.Go(func() { said <- m.say(stream.Context(), c, stream) })
	reason, err := m.converse(c, registered, heard, said)

	m.mu.Lock()
	delete(m.conns, c.id)
	m.decide(core.Disconnected{Conn: c.id, Reason: reason})
	m.mu.Unlock()
	if r := c.peer(); r.ID != "" {
		if c.showsPresence() {
			m.handled.Go(func() { m.awaitRefusal(m.ctx, r, cmp.Or(m.config.Detection, core.DefaultDetection)) })
		}
		m.log.Info("the connection of a task manager has ended", "name", clip(r.Name), "reason", reason)
	}
	return err
}

// converse waits until connection c ends. It returns the reason, which is passed to the core,
// and an error for the task manager, which is nil if the task manager itself ended the
// connection properly.
func (m *Manager) converse(c *conn, registered <-chan struct{}, heard, said <-chan error) (reason string, err error) {
	patience := time.NewTimer(registerWithin)
	defer patience.Stop()
	for {
		select {
		case <-registered:
			registered = nil
			patience.Stop()
		case <-patience.C:
			return "did not register", wire.Error(codes.DeadlineExceeded, "no registration came within %s", registerWithin)
		case err := <-heard:
			if errors.Is(err, io.EOF) {
				return "closed its connection", nil
			}
			if wire.Code(err) == codes.Canceled {
				return "lost its connection", err // gRPC reports a broken connection by the code of a cancellation
			}
			return "lost its connection: " + wire.Reason(err), err
		case err := <-said:
			if errors.Is(err, context.Canceled) || wire.Code(err) == codes.Canceled {
				said = nil // the connection is broken; the error of hear says why
				continue
			}
			if err != nil {
				return "could not be told: " + wire.Reason(err), err
			}
			return "was disconnected", nil
		case <-c.dropped:
			return c.reason, wire.Error(codes.ResourceExhausted, "the task manager %s", c.reason)
		case <-m.ctx.Done():
			return "was disconnected, as the job manager stops", wire.Error(codes.Unavailable, "the job manager stops")
		}
	}
}

// hear receives the messages of a task manager and passes them to the core, until the
// connection ends.
func (m *Manager) hear(c *conn, stream wire.BidiStream[wire.FromTaskManager, wire.ToTaskManager], registered chan<- struct{}) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	r := first.Register
	if r == nil {
		return wire.Error(codes.InvalidArgument, "a task manager registers before it sends anything else")
	}
	close(registered)
	c.introduce(*r)
	m.log.Info("a task manager registers", "name", clip(r.Name), "host", clip(r.Host), "slots", r.Slots, "build", clip(r.Build))
	m.registered(c, r)
	if r.Presence != "" && len(r.PresenceKey) > 0 {
		m.handled.Go(func() { c.verifyPresence(stream.Context(), r) })
	}
	for {
		said, err := stream.Recv()
		if err != nil {
			return err
		}
		switch {
		case said.Heartbeat != nil:
			m.step(core.Heartbeat{Conn: c.id, Heartbeat: *said.Heartbeat})
		case said.Worker != nil:
			m.step(core.Reported{Conn: c.id, WorkerEvent: *said.Worker})
		case said.Leaving != nil:
			m.leaving(c, said.Leaving)
		case said.Leave != nil:
			m.step(core.Left{Conn: c.id, Reason: said.Leave.Reason})
		case said.Register != nil:
			m.step(core.Registered{Conn: c.id, Register: *said.Register})
		}
	}
}

// say sends the queued messages to a task manager, until finish or drop is called or sending
// fails.
func (m *Manager) say(ctx context.Context, c *conn, stream wire.BidiStream[wire.FromTaskManager, wire.ToTaskManager]) error {
	return m.watched(ctx, m.config.WriteTimeout, func(busy busy) error {
		for {
			queue, ending := c.take()
			for i := range queue {
				if err := queue[i].complete(c.peer().Host); err != nil {
					return wire.Error(codes.Internal, "%v", err)
				}
				if err := busy(func() error { return stream.Send(&queue[i].message) }); err != nil {
					return err
				}
			}
			if ending {
				return nil
			}
			select {
			case <-c.wake:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}

// complete adds the credentials of the worker to a deployment. host is the address of the task
// manager.
func (o *outgoing) complete(host string) error {
	if o.credits == nil {
		return nil
	}
	hosts := []string{host}
	deployment := *o.message.Deploy
	if a := deployment.Advertise; a != "" && a != host {
		hosts = append(hosts, a)
	}
	credential, err := o.credits.credential(hosts)
	deployment.Credential = credential
	o.message.Deploy = &deployment
	return err
}

// busy calls a function and returns its error. The function must not take longer than the limit
// of watched.
type busy func(func() error) error

// watched runs f and returns its error. It returns earlier if one call of busy within f takes
// longer than the limit, or if the job manager stops. It is meant for handlers of streams: when
// the handler has returned, gRPC ends the stream, and so the stream's call in which f waits
// returns too.
func (m *Manager) watched(ctx context.Context, limit time.Duration, f func(busy) error) error {
	timer := time.NewTimer(limit)
	timer.Stop()
	defer timer.Stop()
	result := make(chan error, 1)
	m.handled.Go(func() {
		result <- f(func(step func() error) error {
			timer.Reset(limit)
			defer timer.Stop()
			return step()
		})
	})
	select {
	case err := <-result:
		return err
	case <-timer.C:
		return wire.Error(codes.DeadlineExceeded, "the other side did nothing for %s", limit)
	case <-m.ctx.Done():
		return wire.Error(codes.Unavailable, "the job manager stops")
	case <-ctx.Done():
		return ctx.Err()
	}
}
