package rest

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// connections are those that are open. They may be so many at a time, and browsers and
// proxies keep theirs for a next request: so where the limit is near, those that rest are
// closed, the one that has rested longest first, and whoever comes with a request finds
// room. Resting is between two requests, or before the first.
type connections struct {
	most int // that may be open before resting ones are closed

	mu      sync.Mutex
	open    int
	resting *list.List // of net.Conn, the one that has rested longest in front
	places  map[net.Conn]*list.Element
	all     sync.WaitGroup
}

// newConnections returns connections of which there may be limit at a time. One in
// sixteen is kept for those that come.
func newConnections(limit int) *connections {
	return &connections{most: limit - limit/16, resting: list.New(), places: make(map[net.Conn]*list.Element)}
}

// note is told of every state of every connection. A new one is reported by the goroutine
// that takes it, and a closed one by its own when its last request has ended.
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

// makeRoom closes a connection that rests, if there are too many, and one besides the new.
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
