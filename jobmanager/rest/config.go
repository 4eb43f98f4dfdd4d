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

// Manager has the methods that a server needs of a job manager; *jobmanager.Manager implements
// it.
type Manager interface {
	Submit(ctx context.Context, req *wire.SubmitRequest) (*wire.SubmitReply, error)
	List(ctx context.Context, req *wire.ListRequest) (*wire.ListReply, error)
	Show(ctx context.Context, req *wire.ShowRequest) (*wire.JobInfo, error)
	Cancel(ctx context.Context, req *wire.CancelRequest) (*wire.CancelReply, error)
	TaskManagers(ctx context.Context, req *wire.TaskManagersRequest) (*wire.TaskManagersReply, error)
	Overview(ctx context.Context, req *wire.OverviewRequest) (*wire.Overview, error)
	Watch(ctx context.Context, req *wire.FollowRequest, send func(*wire.Event) error) error
	Results(ctx context.Context, req *wire.ResultsRequest) (*wire.ResultsReply, error)
	ReadResult(ctx context.Context, req *wire.ResultRequest, send func(*wire.ResultPiece) error) error
	Log(ctx context.Context, req *wire.LogsRequest, send func(*wire.LogChunk) error) error
	Stats() jobmanager.Stats
	Ready() error
}

// DefaultListen is where a job manager serves HTTP.
const DefaultListen = "127.0.0.1:8081"

// Config is what a server is given. Manager and Token have no default.
type Config struct {
	// Listen is the address; default DefaultListen. One that other machines reach needs
	// TLS, or Insecure.
	Listen string
	// Listener is used instead of Listen if it is set, and closed by the server.
	Listener net.Listener
	// Manager is the job manager to serve. It must outlive the server.
	Manager Manager
	// Token is what every client must show, as "Authorization: Bearer …".
	Token security.Token
	// TLS names the certificates; zero: no TLS. With a CA, clients must show a certificate that
	// it has signed; without a CA, the token alone decides.
	TLS security.TLSFiles
	// Insecure allows to listen for other machines without TLS.
	Insecure bool
	// AllowHosts are the names by which clients may reach the server, besides localhost and its
	// addresses.
	AllowHosts []string
	// Settings returns the settings of the job manager as something that encodes to JSON; nil:
	// none are shown. It is called for each request. Every client with the token sees its
	// result.
	Settings func() any

	// MaxStreams bounds the streams of events and logs at one time; default 256. More
	// are refused.
	MaxStreams int
	// MaxConnections bounds the open connections; default 1024. When nearly as many are open,
	// idle ones are closed; at the bound, new ones wait.
	MaxConnections int
	// WriteTimeout is how long a client may take to read one piece of an answer before
	// it is cut; default 30 s.
	WriteTimeout time.Duration
	// ReadTimeout is how long a client may take to send a request; default 30 s. Its
	// headers have a third of it.
	ReadTimeout time.Duration
	// Heartbeat is how often a stream of events says that it is alive; default 15 s.
	Heartbeat time.Duration

	// Logger gets decisions; default none.
	Logger hclog.Logger
}

// withDefaults fills in what is not set, and refuses what is not valid.
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
