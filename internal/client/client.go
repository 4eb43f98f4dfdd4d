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

// Options say which job manager to talk to, and how.
type Options struct {
	// Address is "host:port", or "host" with DefaultPort.
	Address string
	// Token is shown to the job manager. Where it is empty, that of TokenFile is, or of
	// the file that SUPERSTEP_TOKEN_FILE names, or SUPERSTEP_TOKEN itself, or of the
	// file in which a job manager of this user on this machine leaves it.
	Token     security.Token
	TokenFile string
	// TLS are the files of the certificates; none of them means no TLS.
	TLS security.TLSFiles
	// Insecure permits talking to another machine without TLS: whoever can read along
	// learns the token.
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
	// Logger is told when the job manager is away or does not answer; nil drops it.
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
		return nil, fmt.Errorf("the job manager at %s is on another machine, and without TLS whoever can read along learns the token: give the certificates with --tls-ca, --tls-cert and --tls-key (`superstep tls init` makes them), or --insecure if the network is trusted", address)
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
	// The address is not looked up by resolvers of gRPC's own, so that a proxy of the
	// environment, meant for the web, is not asked for it.
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

// withDefaults fills in what is left out.
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

// alert returns what a server of TLS has against this client. In TLS 1.3 a server
// refuses a certificate when the client takes the connection for made (RFC 8446,
// section 4.4.2.4): a client that writes then finds a broken pipe, and the alert that
// says why is lost. This one only reads. nil is nothing to be told.
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
	var first [1]byte // a server of HTTP/2 speaks first
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

// Cluster returns the overview that Dial was given.
func (c *Client) Cluster() wire.Overview { return c.overview }

// Address returns the job manager's "host:port".
func (c *Client) Address() string { return c.address }

// Close ends the connection, and every request that is under way.
func (c *Client) Close() error { return c.conn.Close() }
