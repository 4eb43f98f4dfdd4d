package simulation

import (
	"fmt"
	"time"
)

// machine is a computer. Processes of a machine that is off are dead, and nobody is told that they are.
type machine struct {
	number int // 0 is that of the job manager
	name   string
	off    bool
}

// network says which machines reach each other.
type network struct {
	cuts map[[2]int]int           // from, to -> number of partitions that drop what is sent that way
	slow map[[2]int]time.Duration // from, to -> what a message takes longer
}

// reaches reports whether what a machine sends arrives at another.
func (n *network) reaches(from, to *machine) bool {
	return from == to || !from.off && !to.off && n.cuts[[2]int{from.number, to.number}] == 0
}

// cut drops what is sent from one machine to another, until heal.
func (w *world) cut(from, to *machine) {
	w.net.cuts[[2]int{from.number, to.number}]++
	w.watch()
}

func (w *world) heal(from, to *machine) {
	key := [2]int{from.number, to.number}
	if w.net.cuts[key]--; w.net.cuts[key] <= 0 {
		delete(w.net.cuts, key)
	}
}

// delay draws how long a message takes.
func (w *world) delay(from, to *machine) time.Duration {
	if from == to {
		return w.between(20*time.Microsecond, 200*time.Microsecond)
	}
	d := w.between(100*time.Microsecond, 2*time.Millisecond)
	if w.chance(200) {
		d += w.between(0, 60*time.Millisecond)
	}
	return d + w.net.slow[[2]int{from.number, to.number}]
}

// retransmission is how long it takes until something that was dropped is sent again.
const retransmission = 100 * time.Millisecond

// route delivers what one machine sends to another, in order. What is dropped is sent again until it
// arrives.
type route struct {
	w        *world
	from, to *machine
	last     time.Duration // when the last message arrives
	queue    []func()
	gone     bool // the connection is broken, and nothing more arrives
}

// send delivers a message.
func (r *route) send(deliver func()) {
	r.queue = append(r.queue, deliver)
	r.last = max(r.last, r.w.now+r.w.delay(r.from, r.to))
	r.w.after(r.last-r.w.now, r.pump)
}

// pump delivers the first message if its machine is reached.
func (r *route) pump() {
	if r.gone || len(r.queue) == 0 {
		return
	}
	if !r.w.net.reaches(r.from, r.to) {
		r.w.after(retransmission, r.pump)
		return
	}
	deliver := r.queue[0]
	r.queue[0] = nil
	r.queue = r.queue[1:]
	deliver()
}

// conn is a connection between two processes. Both sides send messages, which arrive in order.
type conn struct {
	w    *world
	side [2]*side
}

// side is one side of a connection.
type side struct {
	c      *conn
	p      *process
	out    route
	hear   func(m any)
	ended  func(why string) // called at most once; not if this side has closed the connection
	closed bool
	other  *side
}

// connect connects two processes.
func (w *world) connect(a, b *process) *conn {
	c := &conn{w: w}
	for i, p := range []*process{a, b} {
		to := b
		if i == 1 {
			to = a
		}
		c.side[i] = &side{c: c, p: p, out: route{w: w, from: p.machine, to: to.machine}}
	}
	c.side[0].other, c.side[1].other = c.side[1], c.side[0]
	for _, s := range c.side {
		s.p.died = append(s.p.died, func() { s.lost() })
	}
	return c
}

// send sends a message to the other side.
func (s *side) send(m any) {
	if s.closed {
		return
	}
	o := s.other
	s.out.send(func() {
		o.p.do(func() {
			if !o.closed {
				o.hear(m)
			}
		})
	})
}

// close closes the connection. The other side learns of it after all messages.
func (s *side) close(why string) {
	if s.closed {
		return
	}
	s.closed = true
	o := s.other
	s.out.send(func() { o.p.do(func() { o.end(why) }) })
}

// lost is called when the process of the side has died. Its machine closes the connection, unless it is
// off. What was not sent may be lost.
func (s *side) lost() {
	if s.closed {
		return
	}
	if s.out.from.off {
		s.closed = true
		return
	}
	if s.c.w.chance(2) {
		s.out.queue = nil
	}
	s.close("connection reset by peer")
}

// end ends the connection on this side.
func (s *side) end(why string) {
	if s.closed {
		return
	}
	s.closed = true
	s.out.gone = true
	s.ended(why)
}

// reset breaks the connection. What is on its way is lost.
func (c *conn) reset() {
	for _, s := range c.side {
		s.out.gone = true
		c.w.after(c.w.between(0, 5*time.Millisecond), func() { s.p.do(func() { s.end("connection reset") }) })
	}
}

func (m *machine) String() string { return fmt.Sprintf("machine %s", m.name) }
