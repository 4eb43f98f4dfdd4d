package rest

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// connections tracks the open connections, whose number is bounded. Browsers and proxies keep
// connections open for further requests. So when the number is near the bound, idle connections
// are closed, so that new connections can be accepted. The connection that has been idle for
// the longest time is closed first. A connection is idle between two requests and before the
// first one.
type connections struct {
	most int // number of open connections above which idle connections are closed

	mu      sync.Mutex
	open    int
	resting *list.List // idle connections (net.Conn); the connection that has been idle for the longest time is in front
	places  map[net.Conn]*list.Element
	all     sync.WaitGroup
}

// newConnections returns connections for a server that limits their number to limit. It closes
// idle connections when more than 15/16 of limit are open.
func newConnections(limit int) *connections {
	return &connections{most: limit - limit/16, resting: list.New(), places: make(map[net.Conn]*list.Element)}
}

// note is the http.Server's ConnState hook, called for every change of state of every
// connection. For a new connection, the goroutine that accepts connections calls note. For a
// closed connection, the connection's own goroutine calls note after the last request.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakes(conn)
	switch state {
	case http.StateNew:
		c.all.Add(1)
		c.open++
		c.rests(conn)
		c.makeRoom(conn)
	case http.StateIdle:
		c.rests(conn)
	case http.StateClosed:
		c.open--
		c.all.Done()
	}
}

func (c *connections) rests(conn net.Conn) { c.places[conn] = c.resting.PushBack(conn) }

func (c *connections) wakes(conn net.Conn) {
	if place := c.places[conn]; place != nil {
		c.resting.Remove(place)
		delete(c.places, conn)
	}
}

// If more than most connections are open, makeRoom closes the connection that has been idle for
// the longest time. It never closes except.
func (c *connections) makeRoom(except net.Conn) {
	if c.open <= c.most {
		return
	}
	if oldest := c.resting.Front(); oldest != nil && oldest.Value != except {
		conn := oldest.Value.(net.Conn)
		c.wakes(conn)
		_ = conn.Close() // its goroutine then gets an error from Read and calls note
	}
}
