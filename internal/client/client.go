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

// Options determine to which job manager Dial connects, and how.
type Options struct {
	// Address is "host:port", or "host" with DefaultPort.
	Address string
	// Token is sent to the job manager. If it is empty, the token is read from the first of
	// these that is set: the file TokenFile, the file that the environment variable
	// SUPERSTEP_TOKEN_FILE names, the environment variable SUPERSTEP_TOKEN. If none is set, it
	// is read from the token file of a job manager of this user on this machine, if such a file
	// exists.
	Token     security.Token
	TokenFile string
	// TLS has the paths of the certificate files. The zero value means no TLS.
	TLS security.TLSFiles
	// Insecure permits connections to another machine without TLS, on which anybody who can
	// read the network can read the token.
	Insecure bool
	// DialTimeout bounds the time of each unary request that Dial, Upload and Refresh make; 0
	// means DefaultDialTimeout.
	DialTimeout time.Duration
	// StallTimeout bounds the time for which an upload waits until the job manager takes
	// another chunk; 0 means DefaultStallTimeout.
	StallTimeout time.Duration
	// AwayTimeout bounds the time for which FollowToEnd waits for a job manager that cannot be
	// reached; 0 means DefaultAwayTimeout.
	AwayTimeout time.Duration
	// Logger gets a message when the job manager cannot be reached or does not answer. It may
	// be nil.
	Logger hclog.Logger
	// Getenv returns the value of an environment variable; nil means os.Getenv.
	Getenv func(string) string
}

// Client is a connection to a job manager. It has all methods of a wire.Client, and is safe for
// concurrent use.
type Client struct {
	*wire.Client
	options  Options
	address  string
	conn     *grpc.ClientConn
	tls      *tls.Config // nil without TLS
	token    foundToken
	overview wire.Overview
}

// Dial connects to a job manager and asks it for an Overview, so that it returns an error if
// the address, token, certificate or version is wrong. The caller must close the client.
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
	// A proxy in the environment is for web servers, and must not be used for this address.
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

// withDefaults returns the options, with defaults in place of options that are not set.
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

// alert returns the error with which a TLS server refuses this client, or nil if it does not
// refuse it. In TLS 1.3 a server refuses a certificate only after the client considers the
// connection established (RFC 8446, section 4.4.2.4). If the client writes then, it gets a
// broken pipe, and the alert with the reason is lost. So alert only reads.
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
	var first [1]byte // an HTTP/2 server sends the first bytes
	if _, err = conn.Read(first[:]); err != nil && strings.Contains(err.Error(), "remote error: tls: ") {
		return err
	}
	return nil
}

// Refresh asks the job manager for an Overview, with DialTimeout as its time limit.
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

// Close closes the connection, and ends all running requests.
func (c *Client) Close() error { return c.conn.Close() }
