package taskmanager

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// presence is a port that is open as long as this process runs. If the connection to the job
// manager breaks, the job manager connects to the port. If the machine refuses that, the process has
// ended, and the job manager need not wait for it. The port reads nothing. It sends a random key,
// by which the job manager knows that it has reached this process.
type presence struct {
	listener net.Listener
	address  string // by which the job manager reaches it
	key      string
	serving  sync.WaitGroup
}

const (
	presenceWrite = time.Second            // bounds how long the writing of the key may take
	acceptPause   = 100 * time.Millisecond // after an error of Accept
)

// openPresence opens the port on the host c.Listen. It returns nil if the workers need all ports of
// the range that they may use.
func openPresence(c *Config) (*presence, error) {
	if c.Ports != (wire.Ports{}) && c.Ports.Last-c.Ports.First < c.Slots {
		return nil, nil
	}
	listener, err := listenAt(c.Listen, c.Ports)
	if err != nil {
		return nil, fmt.Errorf("open a port by which the job manager sees whether this process runs: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		listener.Close()
		return nil, err
	}
	p := &presence{listener: listener, address: net.JoinHostPort(c.Advertise, port), key: rand.Text()}
	p.serving.Go(p.serve)
	return p, nil
}

// listenAt listens on the last free port of a range, or on any port if there is no range. Workers
// take the first free port.
func listenAt(host string, ports wire.Ports) (net.Listener, error) {
	if ports == (wire.Ports{}) {
		return net.Listen("tcp", net.JoinHostPort(host, "0"))
	}
	var last error
	for port := ports.Last; port >= ports.First; port-- {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return listener, nil
		}
		last = err
	}
	return nil, last
}

// serve sends the key to everybody who connects, until the port is closed.
func (p *presence) serve() {
	for {
		conn, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files; the port stays open
			time.Sleep(acceptPause)
			continue
		}
		_ = conn.SetWriteDeadline(time.Now().Add(presenceWrite))
		_, _ = io.WriteString(conn, p.key)
		_ = conn.Close()
	}
}

// close closes the port.
func (p *presence) close() {
	if p != nil {
		p.listener.Close()
		p.serving.Wait()
	}
}
