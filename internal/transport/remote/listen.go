package remote

import (
	"fmt"
	"net"
	"slices"
	"time"
)

// accept takes connections until the network closes.
func (n *Network) accept() {
	for {
		nc, err := n.listener.Accept()
		if err != nil {
			select {
			case <-n.ctx.Done():
				return
			case <-time.After(10 * time.Millisecond): // out of descriptors, say
				continue
			}
		}
		if !n.meet(nc) {
			nc.Close()
		}
	}
}

// meet begins a handshake. Strangers cannot make this worker hold many connections:
// the one that has taken longest gives way.
func (n *Network) meet(nc net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	if len(n.strangers) >= n.cfg.Workers+spareStrangers {
		n.strangers[0].Close()
		n.strangers = slices.Delete(n.strangers, 0, 1)
	}
	n.strangers = append(n.strangers, nc)
	n.work.Go(func() {
		secure, worker, err := n.greet(nc)
		n.mu.Lock()
		if i := slices.Index(n.strangers, nc); i >= 0 {
			n.strangers = slices.Delete(n.strangers, i, i+1)
		}
		n.mu.Unlock()
		if err == nil {
			err = n.admit(secure, worker)
		}
		if err != nil {
			n.cfg.Logger.Warn("refused a data connection", "from", nc.RemoteAddr(), "reason", err)
			nc.Close()
		}
	})
	return true
}

// admit welcomes a worker that has proved itself, and has its connection read.
func (n *Network) admit(nc net.Conn, worker int) error {
	c := n.newConn(nc, worker, nc.RemoteAddr().String())
	c.greeted = true
	in := newIncoming(c)
	n.mu.Lock()
	taken := n.incoming[worker] != nil
	if !taken {
		n.incoming[worker] = in
	}
	n.mu.Unlock()
	if taken {
		err := &refusal{reason: fmt.Sprintf("worker %d has a connection already", worker)}
		reply(nc, err, nil)
		return err
	}
	if err := reply(nc, nil, nil); err != nil {
		n.forget(c)
		return err
	}
	nc.SetDeadline(time.Time{})
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, box := range n.inboxes {
		in.open(box)
	}
	n.adopt(c, in)
	return nil
}
