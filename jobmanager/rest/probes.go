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

// maxProbes bounds the connections of those that probe.
const maxProbes = 64

// Probes serves /healthz and /readyz, and nothing else, without TLS and to whoever asks:
// for a kubelet, which has no certificate to show and asks by an address that nobody knows
// before. Each connection is good for one question, so that none rests.
type Probes struct {
	listener net.Listener
	http     *http.Server
	serving  chan error
}

// NewProbes serves a job manager's probes until Close is called.
func NewProbes(listen string, manager Manager, log hclog.Logger) (*Probes, error) {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("listen for probes: %w; choose another address with --probes", err)
	}
	s := &Server{config: Config{Manager: manager, WriteTimeout: 10 * time.Second}, log: log}
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", s.action(s.health))
	mux.Handle("GET /readyz", s.action(s.ready))
	p := &Probes{listener: security.LimitListener(listener, maxProbes), serving: make(chan error, 1)}
	p.http = &http.Server{
		Handler: mux, ReadTimeout: 5 * time.Second, MaxHeaderBytes: maxHeader,
		ErrorLog: log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	p.http.SetKeepAlivesEnabled(false)
	go func() { p.serving <- p.http.Serve(p.listener) }()
	log.Info("probes are served", "url", "http://"+p.Address())
	return p, nil
}

// Address is where probes are served.
func (p *Probes) Address() string { return p.listener.Addr().String() }

// Close stops serving. It may be called once.
func (p *Probes) Close() error {
	err := p.http.Close()
	if failed := <-p.serving; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("probes are not served any more: %w", failed))
	}
	return err
}
