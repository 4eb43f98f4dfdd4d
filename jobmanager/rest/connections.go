package rest

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// connections are the open connections, whose number is bounded. Browsers and proxies keep
// theirs open for a next request. So near the bound idle ones are closed, the longest idle
// first, to leave room for new ones. A connection is idle between two requests, and before the
// first.
type connections struct {
	most int // that may be open before idle ones are closed

	mu      sync.Mutex
	open    int
	resting *list.List // of net.Conn, the longest idle in front
	places  map[net.Conn]*list.Element
	all     sync.WaitGroup
}

// newConnections returns connections with a bound of limit. One in sixteen is kept free for new
// ones.
func newConnections(limit int) *connections {
	return &connections{most: limit - limit/16, resting: list.New(), places: make(map[net.Conn]*list.Element)}
}

// note is called for every change of state of every connection: for a new one by the goroutine
// that accepts it, for a closed one by its own goroutine after its last request.
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

// makeRoom closes the longest idle connection other than except, if too many are open.
func (c *connections) makeRoom(except net.Conn) {
	if c.open <= c.most {
		return
	}
	if oldest := c.resting.Front(); oldest != nil && oldest.Value != except {
		conn := oldest.Value.(net.Conn)
		c.wakes(conn)
		_ = conn.Close() // its goroutine reads the end, and says that it is closed
	}
}
