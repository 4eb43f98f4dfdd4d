package peerlink

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Config has the addresses of a port, and the requirements for its peers.
type Config struct {
	// Listen is the address at which connections are accepted, host or host:port; "" means the
	// loopback address. Without a port number, or with port 0, the first free port from
	// FirstPort to LastPort is used, or any free port if they are 0.
	Listen              string
	FirstPort, LastPort int

	// Advertise is the address that other processes dial, host or host:port. It is needed only
	// if it differs from Listen.
	Advertise string

	Job string // name of the job; processes of other jobs are refused

	// Secret, if not empty, is known only to the processes that may connect. Each side of a
	// connection proves that it knows the secret. The secret is never sent.
	Secret []byte

	// TLS, if not nil, is used for all connections, as client and as server. A dialer must
	// present a certificate, whatever ClientAuth is. If ClientCAs is nil, RootCAs is used for
	// both roles. If ServerName is "", a server's certificate must be for the host in its
	// address.
	TLS *tls.Config

	Logger hclog.Logger // may be nil

	Net Net // nil means TCP
}

// Net makes connections.
type Net interface {
	Listen(ctx context.Context, address string) (net.Listener, error)
	Dial(ctx context.Context, address string) (net.Conn, error)
}

// TCP is the Net of real processes. It turns off TCP keep-alive; the users of connections send
// heartbeats or turn keep-alive on.
type TCP struct {
	SocketBuffer int // bytes of the sockets' buffers; 0 means that the operating system tunes them
}

// Listen listens at host:port.
func (t TCP) Listen(ctx context.Context, address string) (net.Listener, error) {
	l := net.ListenConfig{Control: t.control, KeepAlive: -1}
	return l.Listen(ctx, "tcp", address)
}

// Dial connects to host:port.
func (t TCP) Dial(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: handshakeTimeout, Control: t.control, KeepAlive: -1}
	return d.DialContext(ctx, "tcp", address)
}

const (
	// handshakeTimeout bounds the handshake of a connection on both sides, except for the last
	// answer.
	handshakeTimeout = 10 * time.Second

	// earlyWait is the time for which a connection waits for its endpoint to open. After that
	// it is refused, and the dialer tries again.
	earlyWait = time.Second

	// maxHandshaking bounds the connections that have not proved that they know the secret yet.
	// maxEarly bounds the connections that have proved it and wait for their endpoint.
	maxHandshaking = 1024
	maxEarly       = 1024
)

// Port is the listening port of a process. Its methods may be called from any goroutine.
type Port struct {
	cfg      Config
	job      name
	listener net.Listener
	address  string

	ctx  context.Context // ends when the port closes
	stop context.CancelFunc
	work sync.WaitGroup

	mu          sync.Mutex
	closed      bool
	endpoints   map[endpointKey]*Opened
	changed     chan struct{} // closed when an endpoint opens
	handshaking []net.Conn    // connections in their handshakes, the oldest first
	early       int           // number of connections that wait for an endpoint
	refused     refusals
	acceptErr   error // error of the last Accept, or nil
}

// Listen opens a port and starts to accept connections. A connection waits for at most a second
// for its endpoint to open. The caller must close the port after everything that uses the port.
func Listen(cfg Config) (*Port, error) {
	cfg = cfg.completed()
	ctx, stop := context.WithCancel(context.Background())
	l, err := cfg.listen(ctx)
	if err != nil {
		stop()
		return nil, err
	}
	p := &Port{
		cfg: cfg, job: nameOf(cfg.Job), listener: l, ctx: ctx, stop: stop,
		endpoints: make(map[endpointKey]*Opened), changed: make(chan struct{}),
	}
	if p.address, err = advertised(cfg.Advertise, l.Addr()); err != nil {
		stop()
		return nil, errors.Join(err, l.Close())
	}
	p.work.Go(p.accept)
	return p, nil
}

// completed returns the configuration with its defaults.
func (c Config) completed() Config {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.Net == nil {
		c.Net = TCP{}
	}
	if c.TLS != nil {
		c.TLS = c.TLS.Clone()
		if c.TLS.ClientCAs == nil {
			c.TLS.ClientCAs = c.TLS.RootCAs
		}
		c.TLS.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		c.Listen = net.JoinHostPort(cmp.Or(c.Listen, "127.0.0.1"), "0")
	}
	return c
}

// listen listens on the configured port, or on the first free port of the configured range.
func (c *Config) listen(ctx context.Context) (net.Listener, error) {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, err
	}
	if c.FirstPort == 0 || port != "" && port != "0" {
		l, err := c.Net.Listen(ctx, c.Listen)
		if err != nil {
			err = fmt.Errorf("listening at %s: %w", c.Listen, err)
		}
		return l, err
	}
	if c.FirstPort < 1 || c.LastPort > 65535 || c.LastPort < c.FirstPort {
		return nil, fmt.Errorf("there are no ports %d-%d: they go from 1 to 65535", c.FirstPort, c.LastPort)
	}
	for n := c.FirstPort; ; n++ {
		l, err := c.Net.Listen(ctx, net.JoinHostPort(host, strconv.Itoa(n)))
		if err == nil {
			return l, nil
		}
		if n == c.LastPort {
			return nil, fmt.Errorf("listening at %s, ports %d-%d: none is free: every worker of a machine needs one of its own (the last: %w)", host, c.FirstPort, c.LastPort, err)
		}
	}
}

// advertised returns the address that other processes dial. wanted is Config.Advertise, and
// listening is the listener's address.
func advertised(wanted string, listening net.Addr) (string, error) {
	host, port, err := net.SplitHostPort(listening.String())
	if err != nil {
		return listening.String(), nil // not TCP
	}
	if wanted != "" {
		if h, p, err := net.SplitHostPort(wanted); err != nil {
			host = wanted
		} else if host = h; p != "" && p != "0" {
			port = p
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("the port %q to advertise is not a number from 1 to 65535", port)
	}
	return net.JoinHostPort(host, port), nil
}

// Address returns the address that other processes dial, host:port. The host may be unspecified
// (0.0.0.0, ::) if the port listens on all interfaces and nothing is advertised.
func (p *Port) Address() string { return p.address }

// Everywhere reports whether the host of Address is unspecified, so that other processes cannot
// dial Address.
func (p *Port) Everywhere() bool {
	host, _, _ := net.SplitHostPort(p.address)
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// Bound returns the address on which the port listens.
func (p *Port) Bound() net.Addr { return p.listener.Addr() }

// Encrypted reports whether connections use TLS. TLS authenticates the data on them, so they
// need no checksums.
func (p *Port) Encrypted() bool { return p.cfg.TLS != nil }

// Secret returns the length of the secret in bytes. It is 0 if the port has no secret.
func (p *Port) Secret() int { return len(p.cfg.Secret) }

// AcceptError returns the error of the last try to accept a connection, such as a lack of file
// descriptors, or nil if it succeeded.
func (p *Port) AcceptError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acceptErr
}

// Close stops listening, closes the connections that are in their handshakes, and returns when
// all goroutines of the port have ended. Connections after Welcome stay open.
func (p *Port) Close() error {
	p.mu.Lock()
	again := p.closed
	p.closed = true
	handshaking := slices.Clone(p.handshaking)
	p.mu.Unlock()
	p.stop()
	var err error
	if !again {
		err = p.listener.Close()
	}
	for _, nc := range handshaking {
		nc.Close()
	}
	p.work.Wait()
	p.mu.Lock()
	untold := p.refused.rest()
	p.mu.Unlock()
	if untold > 0 {
		p.cfg.Logger.Warn("refused connections that were not logged one by one", "connections", untold)
	}
	return err
}

// accept accepts connections until the port closes.
func (p *Port) accept() {
	const first, last = 5 * time.Millisecond, time.Second
	for pause := first; ; {
		nc, err := p.listener.Accept()
		p.mu.Lock()
		p.acceptErr = err
		p.mu.Unlock()
		if err == nil {
			pause = first
			p.meet(nc)
			continue
		}
		select { // the next Accept may succeed, for example after a lack of descriptors or an aborted connection
		case <-p.ctx.Done():
			return
		case <-time.After(pause):
			pause = min(2*pause, last)
		}
	}
}

// meet starts the handshake of a new connection. If there are maxHandshaking handshakes
// already, it closes the oldest connection.
func (p *Port) meet(nc net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		nc.Close()
		return
	}
	if len(p.handshaking) >= maxHandshaking {
		p.handshaking[0].Close()
		p.handshaking = slices.Delete(p.handshaking, 0, 1)
	}
	p.handshaking = append(p.handshaking, nc)
	p.work.Go(func() {
		secure, g, err := p.greet(nc)
		p.mu.Lock()
		if i := slices.Index(p.handshaking, nc); i >= 0 {
			p.handshaking = slices.Delete(p.handshaking, i, i+1)
		}
		p.mu.Unlock()
		if err == nil {
			err = p.admit(secure, g)
		}
		if err != nil {
			p.tell(nc, err)
			nc.Close()
		}
	})
}

// tell logs that a connection was refused, unless maxLoggedRefusals refusals were logged in the
// current period.
func (p *Port) tell(nc net.Conn, err error) {
	p.mu.Lock()
	untold, tell := p.refused.next(time.Now())
	p.mu.Unlock()
	if !tell {
		return
	}
	said := []any{"from", nc.RemoteAddr(), "reason", err}
	if untold > 0 {
		said = append(said, "others before", untold)
	}
	p.cfg.Logger.Warn("refused a connection", said...)
}

// refusals bounds the number of log lines that connections without the secret can cause.
type refusals struct {
	since            time.Time
	logged, unlogged int
}

// In a period of refusalWindow, the first maxLoggedRefusals refusals are logged, and further
// refusals are only counted.
const (
	refusalWindow     = time.Minute
	maxLoggedRefusals = 5
)

// next is called for each refusal. It reports whether to log the refusal (tell), and how many
// refusals of the previous period were not logged (untold).
func (r *refusals) next(now time.Time) (untold int, tell bool) {
	if now.Sub(r.since) >= refusalWindow {
		untold, r.since, r.logged, r.unlogged = r.unlogged, now, 0, 0
	}
	if r.logged == maxLoggedRefusals {
		r.unlogged++
		return 0, false
	}
	r.logged++
	return untold, true
}

// rest returns the number of refusals of the current period that were not logged, and sets this
// number to 0.
func (r *refusals) rest() (untold int) {
	untold, r.unlogged = r.unlogged, 0
	return untold
}

// greet carries out the listener's side of a handshake, except for the last answer. It returns
// the connection, which is inside TLS if the port uses it, and the hello.
func (p *Port) greet(nc net.Conn) (net.Conn, *greeting, error) {
	nc.SetDeadline(time.Now().Add(handshakeTimeout))
	if p.cfg.TLS != nil {
		secure := tls.Server(nc, p.cfg.TLS)
		if err := secure.HandshakeContext(p.ctx); err != nil {
			return nil, nil, fmt.Errorf("TLS: %w", err)
		}
		nc = secure
	}
	g, raw, err := readGreeting(nc)
	if err == nil {
		err = p.check(g)
	}
	if err == nil && p.Secret() > 0 {
		err = p.verify(nc, raw)
	}
	if err == nil {
		return nc, g, nil
	}
	if errors.Is(err, ErrRefused) {
		answer(nc, err, nil)
	}
	if g != nil && (errors.Is(err, ErrSecret) || errors.Is(err, ErrNoSecret)) {
		if d := p.endpoint(g); d != nil && d.Distrust != nil {
			d.Distrust(nc.RemoteAddr(), err)
		}
	}
	return nil, nil, err
}

// check returns a refusal if the hello is not valid for this port.
func (p *Port) check(g *greeting) error {
	switch {
	case g.secret && p.Secret() == 0:
		return refuseFor(ErrNoSecret, "the other has none")
	case !g.secret && p.Secret() > 0:
		return refuseFor(ErrNoSecret, "the side that connects sends no proof of the secret")
	case g.job != p.job:
		return Refuse("it is a process of another job")
	}
	return nil
}

// verify proves to the dialer that this side knows the secret, and checks the dialer's proof.
func (p *Port) verify(nc net.Conn, hello []byte) error {
	nonce := make([]byte, nonceBytes)
	rand.Read(nonce)
	if err := answer(nc, nil, slices.Concat(nonce, prove(p.cfg.Secret, listener, hello, nonce))); err != nil {
		return err
	}
	proof := make([]byte, proofBytes)
	var theirs *Refusal
	switch err := readAnswer(nc, proof); {
	case errors.As(err, &theirs):
		return err
	case err != nil:
		return fmt.Errorf("it proves nothing: %w", err)
	}
	return matches(proof, prove(p.cfg.Secret, dialer, hello, nonce))
}

// Unread reports whether unread bytes, or the end of the connection, have arrived on nc. It
// neither reads nor waits for a goroutine that reads.
func Unread(nc net.Conn) bool { return unread(Socket(nc)) }

// Socket returns the connection beneath nc if nc is a TLS connection, and nc otherwise.
func Socket(nc net.Conn) net.Conn {
	if secure, ok := nc.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return nc
}
