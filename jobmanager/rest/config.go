package rest

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager"
)

// Manager has those methods of a job manager that a server calls. *jobmanager.Manager
// implements Manager.
type Manager interface {
	Submit(ctx context.Context, req *wire.SubmitRequest) (*wire.SubmitReply, error)
	List(ctx context.Context, req *wire.ListRequest) (*wire.ListReply, error)
	Show(ctx context.Context, req *wire.ShowRequest) (*wire.JobInfo, error)
	Cancel(ctx context.Context, req *wire.CancelRequest) (*wire.CancelReply, error)
	Scale(ctx context.Context, req *wire.ScaleRequest) (*wire.ScaleReply, error)
	Savepoint(ctx context.Context, req *wire.SavepointRequest) (*wire.SavepointReply, error)
	Cordon(ctx context.Context, req *wire.CordonRequest) (*wire.CordonReply, error)
	Uncordon(ctx context.Context, req *wire.UncordonRequest) (*wire.CordonReply, error)
	Drain(ctx context.Context, req *wire.DrainRequest) (*wire.DrainReply, error)
	TaskManagers(ctx context.Context, req *wire.TaskManagersRequest) (*wire.TaskManagersReply, error)
	Overview(ctx context.Context, req *wire.OverviewRequest) (*wire.Overview, error)
	Watch(ctx context.Context, req *wire.FollowRequest, send func(*wire.Event) error) error
	Results(ctx context.Context, req *wire.ResultsRequest) (*wire.ResultsReply, error)
	ReadResult(ctx context.Context, req *wire.ResultRequest, send func(*wire.ResultPiece) error) error
	Log(ctx context.Context, req *wire.LogsRequest, send func(*wire.LogChunk) error) error
	Stats() jobmanager.Stats
	Ready() error
}

// DefaultListen is the default of Config.Listen.
const DefaultListen = "127.0.0.1:8081"

// Config configures a server. Manager and Token have no default.
type Config struct {
	// Listen is the address on which the server listens; default DefaultListen. An address that
	// other machines can reach needs TLS or Insecure.
	Listen string
	// Listener, if not nil, is used instead of Listen. The server closes it.
	Listener net.Listener
	// Manager is the job manager to serve. It must outlive the server.
	Manager Manager
	// Token is the token that every client must send in the header "Authorization: Bearer …".
	Token security.Token
	// TLS has the names of the certificate files; the zero value means no TLS. If TLS has a CA,
	// clients must present a certificate that the CA has signed. Without a CA, clients need
	// only the token.
	TLS security.TLSFiles
	// Insecure allows Listen to be an address that other machines can reach although there is
	// no TLS.
	Insecure bool
	// AllowHosts has host names that are accepted in the Host header of requests, besides
	// localhost and the server's addresses.
	AllowHosts []string
	// Settings returns the settings of the job manager as a value that encoding/json can
	// encode; if Settings is nil, clients get no settings. It is called for each request of the
	// settings. Every client with the token can read the result.
	Settings func() any

	// MaxStreams bounds the number of streams of events and logs that are open at the same
	// time; default 256. When they are open, requests for further streams are refused.
	MaxStreams int
	// MaxConnections bounds the number of open connections; default 1024. When the number is
	// near the bound, idle connections are closed; when it has reached the bound, new
	// connections wait.
	MaxConnections int
	// WriteTimeout is how long a client may take to read one piece of an answer, before its
	// connection is closed; default 30 s.
	WriteTimeout time.Duration
	// ReadTimeout is how long a client may take to send a request; default 30 s. The headers
	// must arrive within a third of ReadTimeout.
	ReadTimeout time.Duration
	// Heartbeat is the interval at which a stream of events sends a comment while there are no
	// events; default 15 s.
	Heartbeat time.Duration

	// Logger receives log messages; the default discards them.
	Logger hclog.Logger
}

// withDefaults returns c with defaults for all fields that are not set, or an error if a value
// is not valid.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Manager == nil:
		return c, errors.New("the HTTP server has no job manager to serve: set Config.Manager")
	case c.Token.IsZero():
		return c, errors.New("the HTTP server has no token to ask for: set Config.Token to the job manager's")
	case c.MaxStreams < 0 || c.MaxConnections < 0 || c.WriteTimeout < 0 || c.ReadTimeout < 0 || c.Heartbeat < 0:
		return c, errors.New("limits and times of the HTTP server cannot be negative")
	}
	c.Listen = cmp.Or(c.Listen, DefaultListen)
	c.MaxStreams = cmp.Or(c.MaxStreams, 256)
	c.MaxConnections = cmp.Or(c.MaxConnections, 1024)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 30*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, 30*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 15*time.Second)
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c, nil
}
