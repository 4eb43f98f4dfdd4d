//go:build unix

package mesh

import "syscall"

// attempt writes as many bytes of head and tail to a socket as is possible without waiting. n
// is the number of bytes written.
type attempt struct {
	head, tail []byte
	n          int
	err        error
	gathered   gathered
}

// write is called by the connection's RawConn. It always returns true, since RawConn.Write
// would wait if it returned false.
func (a *attempt) write(fd uintptr) bool {
	for len(a.head)+len(a.tail) > 0 {
		n, err := a.gathered.writeBoth(fd, a.head, a.tail)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			if err != syscall.EAGAIN {
				a.err = err
			}
			return true
		}
		a.n += n
		head := min(n, len(a.head))
		a.head, a.tail = a.head[head:], a.tail[n-head:]
	}
	return true
}

// attemptWrite writes as many bytes of head and tail as is possible without waiting, and
// returns their number. The caller holds mu.
func (c *tcpConn) attemptWrite(head, tail []byte) (int, error) {
	c.attempt = attempt{head: head, tail: tail}
	var err error
	if c.own != nil {
		c.attempt.write(uintptr(c.own.fd))
	} else {
		err = c.raw.Write(c.try)
	}
	n := c.attempt.n
	if err == nil {
		err = c.attempt.err
	}
	c.attempt = attempt{}
	return n, err
}
