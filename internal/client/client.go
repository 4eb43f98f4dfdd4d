package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
)

// Defaults of the options.
const (
	DefaultDialTimeout  = 10 * time.Second
	DefaultStallTimeout = 30 * time.Second
	DefaultAwayTimeout  = time.Minute
)

// Options say which job manager to connect to, and how.
type Options struct {
	// Address is "host:port", or "host" with DefaultPort.
	Address string
	// Token is shown to the job manager. If it is empty, it is read from the first of these
	// that is set: TokenFile, the file that SUPERSTEP_TOKEN_FILE names, SUPERSTEP_TOKEN itself.
	// The last resort is the file in which a job manager of this user on this machine leaves
	// its token.
	Token     security.Token
	TokenFile string
	// TLS names the files of the certificates; without any there is no TLS.
	TLS security.TLSFiles
	// Insecure permits connections to another machine without TLS: anybody who reads the
	// network learns the token.
	Insecure bool
	// DialTimeout bounds the wait for the first answer, and for every other request
	// that Dial, Upload and FollowToEnd make by themselves; 0 is DefaultDialTimeout.
	DialTimeout time.Duration
	// StallTimeout is how long an upload waits for the job manager to take another
	// chunk; 0 is DefaultStallTimeout.
	StallTimeout time.Duration
	// AwayTimeout is how long FollowToEnd waits for a job manager that went away; 0 is
	// DefaultAwayTimeout.
	AwayTimeout time.Duration
	// Logger gets a message when the job manager is away or does not answer; nil discards it.
	Logger hclog.Logger
	// Getenv reads the environment; nil is os.Getenv.
	Getenv func(string) string
}

// Client is a connection to a job manager. It has all requests of a wire.Client, and
// is safe for concurrent use.
type Client struct {
	*wire.Client
	options  Options
	address  string
	conn     *grpc.ClientConn
	tls      *tls.Config // nil without TLS
	token    foundToken
	overview wire.Overview
}

// Dial connects to a job manager and asks it for an Overview, so that a wrong
// address, token, certificate or version is known at once. The caller closes the
// client.
func Dial(ctx context.Context, options Options) (*Client, error) {
	address, port, err := ParseAddress(options.Address)
	if err != nil {
		return nil, err
	}
	c := &Client{options: options.withDefaults(), address: address}
	secured := !options.TLS.IsZero()
	local, err := security.IsLoopback(address)
	if err != nil {
		return nil, err
	}
	if !secured && !options.Insecure && !local {
		return nil, fmt.Errorf("the job manager at %s is on another machine, and without TLS anyone on the network can read the token: give the certificates with --tls-ca, --tls-cert and --tls-key (`superstep tls init` makes them), or --insecure if the network is trusted", address)
	}
	if c.token, err = c.options.findToken(port); err != nil {
		return nil, err
	}
	dial := wire.DialOptions()
	if secured {
		if c.tls, err = options.TLS.Client(); err != nil {
			return nil, err
		}
	}
	dial = append(dial, grpc.WithTransportCredentials(security.ClientCredentials(c.tls)))
	if !c.token.token.IsZero() {
		dial = append(dial, grpc.WithPerRPCCredentials(security.TokenCredentials(c.token.token, secured)))
	}
	// A proxy of the environment is meant for the web, and must not be used for this address.
	dial = append(dial, grpc.WithNoProxy())
	if c.conn, err = grpc.NewClient("passthrough:///"+address, dial...); err != nil {
		return nil, fmt.Errorf("connect to the job manager at %s: %w", address, err)
	}
	c.Client = wire.NewClient(c.conn)
	if err := c.meet(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// withDefaults fills in what is not set.
func (o Options) withDefaults() Options {
	if o.DialTimeout <= 0 {
		o.DialTimeout = DefaultDialTimeout
	}
	if o.StallTimeout <= 0 {
		o.StallTimeout = DefaultStallTimeout
	}
	if o.AwayTimeout <= 0 {
		o.AwayTimeout = DefaultAwayTimeout
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	return o
}

// meet asks for the overview and compares versions.
func (c *Client) meet(ctx context.Context) error {
	o, err := c.Refresh(ctx)
	if err != nil && c.tls != nil && wire.Code(err) == codes.Unavailable {
		if alert := c.alert(ctx); alert != nil {
			err = fmt.Errorf("the job manager at %s cannot be reached: %w", c.address, security.ExplainDial(alert))
		}
	}
	if err != nil {
		return err
	}
	c.overview = *o
	return wire.CheckVersion(o.Version, "the job manager at "+c.address)
}

// alert returns why a TLS server refuses this client, nil if it does not. In TLS 1.3 a server
// refuses a certificate only after the client considers the connection established (RFC 8446,
// section 4.4.2.4). If the client writes then, it gets a broken pipe, and the alert with the
// reason is lost. So alert only reads.
func (c *Client) alert(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.DialTimeout)
	defer cancel()
	config := c.tls.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", c.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetReadDeadline(deadline); err != nil {
			return nil
		}
	}
	var first [1]byte // an HTTP/2 server sends first
	if _, err = conn.Read(first[:]); err != nil && strings.Contains(err.Error(), "remote error: tls: ") {
		return err
	}
	return nil
}

// Refresh asks for the cluster at a glance, in DialTimeout.
func (c *Client) Refresh(ctx context.Context) (*wire.Overview, error) {
	bounded, cancel := context.WithTimeout(ctx, c.options.DialTimeout)
	defer cancel()
	o, err := c.Overview(bounded, &wire.OverviewRequest{Version: wire.Version})
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, c.Explain(err)
	}
	return o, nil
}

// Cluster returns the overview that Dial received.
func (c *Client) Cluster() wire.Overview { return c.overview }

// Address returns the job manager's "host:port".
func (c *Client) Address() string { return c.address }

// Close ends the connection, and every request that is under way.
func (c *Client) Close() error { return c.conn.Close() }
