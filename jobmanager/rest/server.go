package rest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/security"
)

const (
	maxBody   = 1 << 20     // maximum size of a request's body in bytes
	maxHeader = 32 << 10    // maximum size of a request's headers in bytes
	parting   = time.Second // how long requests may take to end after Close has been called
)

// Server serves a job manager by HTTP until it is closed.
type Server struct {
	config   Config
	log      hclog.Logger
	listener net.Listener
	tls      bool
	routes   []route
	openapi  []byte
	metrics  *metrics
	http     *http.Server
	streams  chan struct{} // buffered channel with one element for each open stream

	ending      context.Context    // done when the streams must end
	endStreams  context.CancelFunc // called when the server begins to close
	endRequests context.CancelFunc // called when the time for requests to end is over
	serving     chan struct{}      // closed when no more connections are accepted
	failed      error              // why the server stopped serving before Close; may be read after serving is closed
	connections *connections
	closing     sync.Once
	closed      error
}

// New starts a server, which serves until Close is called.
func New(config Config) (*Server, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{config: config, log: config.Logger, streams: make(chan struct{}, config.MaxStreams), serving: make(chan struct{})}
	s.connections = newConnections(config.MaxConnections)
	s.routes = s.table()
	s.metrics = newMetrics(s)
	if s.openapi, err = s.document(); err != nil {
		return nil, err
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	s.ending, s.endStreams = context.WithCancel(context.Background())
	requests, end := context.WithCancel(context.Background())
	s.endRequests = end
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // HTTP/1 has one request at a time per connection, so that a deadline affects only one request
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: config.ReadTimeout / 3,
		ReadTimeout:       config.ReadTimeout,
		WriteTimeout:      config.ReadTimeout + config.WriteTimeout, // applies to answers for which grant is not called
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		Protocols:         protocols,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ConnState:         s.connections.note,
		ErrorLog:          s.log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	if err := s.secure(); err != nil {
		s.endStreams()
		s.endRequests()
		return nil, errors.Join(err, s.listener.Close())
	}
	go s.serve()
	s.log.Info("HTTP is served", "url", s.URL())
	return s, nil
}

// listen listens on the configured address. It returns an error if the address is not safe
// without TLS.
func (s *Server) listen() (err error) {
	s.tls = !s.config.TLS.IsZero()
	address := s.config.Listen
	if s.config.Listener != nil {
		address = s.config.Listener.Addr().String()
	}
	if err := security.CheckListen(address, s.tls, s.config.Insecure); err != nil {
		return fmt.Errorf("HTTP: %w", err)
	}
	s.listener = s.config.Listener
	if s.listener == nil {
		if s.listener, err = net.Listen("tcp", address); err != nil {
			return fmt.Errorf("listen for HTTP: %w; another job manager may run, choose another address with --http", err)
		}
	}
	return nil
}

// secure limits the connections of the listener and adds TLS. TLS wraps the limited listener,
// so that connections count even if their handshake never ends.
func (s *Server) secure() (err error) {
	s.listener = security.LimitListener(s.listener, s.config.MaxConnections)
	if !s.tls {
		return nil
	}
	s.http.TLSConfig, err = s.config.TLS.Server()
	if err != nil {
		return fmt.Errorf("HTTP: %w", err)
	}
	return nil
}

// serve accepts connections until the server closes.
func (s *Server) serve() {
	defer close(s.serving)
	var err error
	if s.tls {
		err = s.http.ServeTLS(s.listener, "", "")
	} else {
		err = s.http.Serve(s.listener)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		s.failed = fmt.Errorf("HTTP is not served any more: %w", err)
		s.log.Error("HTTP is not served any more", "error", err)
	}
}

// Address returns the address on which the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// URL returns the URL of the server for a browser on this machine, such as
// "http://127.0.0.1:8081".
func (s *Server) URL() string {
	scheme := "http"
	if s.tls {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(s.Address())
	if err != nil {
		return scheme + "://" + s.Address()
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// Close stops the server. It ends streams, and gives other requests one second to finish. When
// it returns, all goroutines of the server have ended. It may be called more than once.
func (s *Server) Close() error {
	s.closing.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), parting)
		defer cancel()
		s.endStreams()
		if err := s.http.Shutdown(ctx); err != nil {
			s.closed = s.http.Close() // closes the connections of requests that still run
		}
		s.endRequests()
		<-s.serving
		s.connections.all.Wait()
		s.closed = errors.Join(s.closed, s.failed)
	})
	return s.closed
}
