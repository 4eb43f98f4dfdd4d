package rest

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/security"
)

// maxProbes bounds the number of connections for probes. When the number is near the bound,
// connections without a request are closed, because anybody who can reach the port can open
// many connections.
const maxProbes = 256

// probeTimeout is how long a probe may take to send its request.
const probeTimeout = 5 * time.Second

// Probes serves only /healthz and /readyz, to anybody and without TLS. It is for a kubelet of
// Kubernetes, which has no certificate and sends a Host header that cannot be configured in
// advance. A connection is closed after one request, so that no connection is idle.
type Probes struct {
	listener    net.Listener
	http        *http.Server
	connections *connections
	serving     chan error
}

// NewProbes returns a server of the probes of a job manager. It serves on the address listen
// until Close is called.
func NewProbes(listen string, manager Manager, log hclog.Logger) (*Probes, error) {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("listen for probes: %w; choose another address with --probes", err)
	}
	s := &Server{config: Config{Manager: manager, WriteTimeout: 10 * time.Second}, log: log}
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", s.action(s.health))
	mux.Handle("GET /readyz", s.action(s.ready))
	p := &Probes{listener: security.LimitListener(listener, maxProbes), connections: newConnections(maxProbes), serving: make(chan error, 1)}
	p.http = &http.Server{
		Handler: mux, ReadTimeout: probeTimeout, MaxHeaderBytes: maxHeader, ConnState: p.connections.note,
		ErrorLog: log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	p.http.SetKeepAlivesEnabled(false)
	go func() { p.serving <- p.http.Serve(p.listener) }()
	log.Info("probes are served", "url", "http://"+p.Address())
	return p, nil
}

// Address returns the address on which probes are served.
func (p *Probes) Address() string { return p.listener.Addr().String() }

// Close stops serving. It must not be called twice.
func (p *Probes) Close() error {
	err := p.http.Close()
	defer p.connections.all.Wait()
	if failed := <-p.serving; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("probes are not served any more: %w", failed))
	}
	return err
}
