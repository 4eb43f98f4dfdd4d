package membership

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// Join waits until all processes of the group have joined, and returns the membership of this
// process. It returns an error if ctx ends, if the group is not complete after the join
// timeout, if the processes do not agree about the group, or if a process is lost meanwhile.
// The error names the processes that caused it and the reason. The caller must close the
// membership.
func Join(ctx context.Context, cfg Config) (*Membership, error) {
	cfg, err := cfg.completed()
	if err != nil {
		return nil, fmt.Errorf("membership: %w", err)
	}
	join := joinCoordinator
	if cfg.Process == 0 {
		join = joinAsCoordinator
	}
	m, err := join(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("membership: process %d cannot join group %q: %w", cfg.Process, cfg.Group, err)
	}
	return m, nil
}

// joinAsCoordinator starts the coordinator and joins the group as process 0.
func joinAsCoordinator(ctx context.Context, cfg Config) (*Membership, error) {
	c, err := newCoordinator(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if c.endpoint != nil && cfg.Store != nil {
		addresses, err := candidates(cfg.Port.Address(), cfg.Port.Bound())
		if err == nil {
			err = cfg.Store.Set(ctx, cfg.key(), []byte(addresses))
		}
		if err != nil {
			c.close()
			return nil, err
		}
	}
	stop := context.AfterFunc(ctx, func() { c.giveUp(context.Cause(ctx)) })
	defer stop()
	for {
		m, err := c.local.receive()
		switch m := m.(type) {
		case welcome:
			return newMembership(cfg, m, c.local, c), nil
		case refuse:
			err = m.cause
		}
		if err != nil {
			c.close()
			return nil, err
		}
	}
}

// candidates returns the addresses at which a port may be reached, separated by commas. They
// are the advertised address and the bound address. If the port is bound to all interfaces, the
// addresses of all interfaces replace the bound address.
func candidates(advertised string, bound net.Addr) (string, error) {
	near, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return bound.String(), nil // not an address of TCP
	}
	var all []string
	host, _, err := net.SplitHostPort(advertised)
	if ip, no := netip.ParseAddr(host); err == nil && host != "" && (no != nil || !ip.IsUnspecified()) {
		all = append(all, advertised)
	}
	if ip, err := netip.ParseAddr(near); err != nil || !ip.IsUnspecified() {
		if at := bound.String(); at != advertised {
			all = append(all, at)
		}
		return strings.Join(all, ","), nil
	}
	nets, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	var loopback []string
	for _, n := range nets {
		prefix, err := netip.ParsePrefix(n.String())
		if err != nil {
			continue
		}
		switch ip := prefix.Addr(); {
		case ip.IsLoopback():
			loopback = append(loopback, net.JoinHostPort(ip.String(), port))
		case ip.IsGlobalUnicast():
			all = append(all, net.JoinHostPort(ip.String(), port))
		}
	}
	return strings.Join(append(all, loopback...), ","), nil
}

// attemptTimeout bounds the time of one attempt to connect to the coordinator.
const attemptTimeout = 3 * time.Second

// joinCoordinator joins as a process other than process 0. It repeats the attempt until it
// succeeds, until it gets a final refusal, or until the join timeout ends.
func joinCoordinator(ctx context.Context, cfg Config) (*Membership, error) {
	attemptCtx, cancel := context.WithTimeout(ctx, cfg.JoinTimeout)
	defer cancel()
	answerCtx, cancelAnswer := context.WithTimeout(ctx, cfg.JoinTimeout+verdictSlack)
	defer cancelAnswer()
	m, err := peerlink.Retry(attemptCtx, func(attemptCtx context.Context) (*Membership, error) { return joinAtAny(attemptCtx, answerCtx, &cfg) })
	switch {
	case err == nil || attemptCtx.Err() == nil || peerlink.IsFinal(err):
		return m, err
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	return nil, fmt.Errorf("%w after %v: %w", ErrTimeout, cfg.JoinTimeout, err)
}

// joinAtAny tries to join at all addresses of the coordinator. It reads the store each time, as
// the value that it read before may be the address of an earlier run.
func joinAtAny(ctx, answerCtx context.Context, cfg *Config) (*Membership, error) {
	addresses := []string{cfg.Coordinator}
	if cfg.Store != nil {
		published, err := cfg.Store.Get(ctx, cfg.key())
		if err != nil {
			return nil, fmt.Errorf("process 0 has not published its address: has it started? (%w)", err)
		}
		addresses = strings.Split(string(published), ",")
	}
	var errs []error
	for _, address := range addresses {
		m, err := joinAddress(ctx, answerCtx, cfg, address)
		if m != nil {
			return m, nil
		}
		err = fmt.Errorf("coordinator at %s: %w", address, err)
		if peerlink.IsFinal(err) {
			return nil, err
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// A process that has reached process 0 waits for verdictSlack longer than its own join timeout.
// The join timeout of process 0 ends at about the same time, and only the error of process 0
// says which processes are missing.
const verdictSlack = time.Second

// joinAddress makes one attempt to join at one address of the coordinator. ctx bounds the wait
// for the coordinator's first answer, and answerCtx bounds the wait for the final answer.
func joinAddress(ctx, answerCtx context.Context, cfg *Config, address string) (*Membership, error) {
	short, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	nc, err := cfg.Port.Dial(short, address, peerlink.Hello{
		Kind: peerlink.Control, Scope: cfg.Group, Epoch: cfg.Attempt, From: uint32(cfg.Process), Size: uint32(cfg.Processes),
	})
	switch {
	case err == nil:
	case nc != nil: // the coordinator has not received this package's hello, so another attempt is possible
		nc.Close()
		return nil, err
	case errors.Is(err, peerlink.ErrRefused), errors.Is(err, peerlink.ErrProtocol):
		return nil, err
	default:
		return nil, fmt.Errorf("has process 0 started? (%w)", err)
	}
	limit := limit{nc: nc}
	limit.set(ctx)
	defer limit.lift()
	at, err := advertised(short, cfg.DataAddress, ipOf(nc.LocalAddr()))
	if err != nil {
		nc.Close()
		return nil, peerlink.Final(err)
	}
	link := newConn(nc, cfg.Detection)
	link.send(cfg.hello(at))
	w, err := awaitAnswer(ctx, answerCtx, cfg, link, &limit)
	if err == nil && !limit.lift() {
		err = context.DeadlineExceeded
	}
	if err != nil {
		link.close()
		return nil, err
	}
	return newMembership(*cfg, w, link, nil), nil
}

// limit makes the reads and writes of a connection fail when the context that was passed to set
// ends.
type limit struct {
	nc   net.Conn
	stop func() bool
}

func (l *limit) set(ctx context.Context) {
	l.stop = context.AfterFunc(ctx, func() { l.nc.SetDeadline(time.Unix(1, 0)) })
}

// lift removes the limit. It returns false if the context had already ended; the connection is
// not usable then.
func (l *limit) lift() bool { return l.stop() }

// awaitAnswer waits for the coordinator's answers to the hello: until ctx ends for the first
// answer, and until answerCtx ends for the final answer.
func awaitAnswer(ctx, answerCtx context.Context, cfg *Config, link *conn, limit *limit) (welcome, error) {
	missing := ""
	for {
		m, err := link.receive()
		switch m := m.(type) {
		case waiting:
			if missing == "" && limit.lift() {
				limit.set(answerCtx)
				ctx = answerCtx
			}
			missing = m.missing
		case welcome:
			return m, m.check(cfg)
		case refuse:
			return welcome{}, peerlink.Final(m.cause)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil && missing != "":
			return welcome{}, errors.New(missing)
		case missing != "":
			// The coordinator has accepted the hello, so it is the coordinator of this run, and
			// another attempt would fail too.
			reason, kind := lossReason(err)
			return welcome{}, peerlink.Final(&textError{fmt.Sprintf("process 0 %s while the group was forming", reason), kind})
		default:
			return welcome{}, err
		}
	}
}

// check returns an error if the table of the welcome does not agree with cfg.
func (w *welcome) check(cfg *Config) error {
	hosts := 0
	for _, p := range w.table {
		hosts += len(p.Ranks)
	}
	if len(w.table) != cfg.Processes || hosts != cfg.Size || w.detection < int64(minDetection) {
		return peerlink.Final(fmt.Errorf("its table has %d processes and %d ranks, not %d and %d",
			len(w.table), hosts, cfg.Processes, cfg.Size))
	}
	for _, p := range w.table {
		for _, r := range p.Ranks {
			if r >= cfg.Size {
				return peerlink.Final(fmt.Errorf("its table has a rank %d, not in 0..%d", r, cfg.Size-1))
			}
		}
		if len(p.Ranks) == 0 {
			return peerlink.Final(errors.New("its table has a process without ranks"))
		}
	}
	return nil
}
