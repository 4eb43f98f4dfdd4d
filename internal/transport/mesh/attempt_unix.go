//go:build unix

package mesh

import "syscall"

// attempt writes two pieces to a socket, as far as it takes them without waiting.
type attempt struct {
	head, tail []byte
	n          int
	err        error
}

// write is what the connection's raw access calls. It never asks to be called
// again: that would wait.
func (a *attempt) write(fd uintptr) bool {
	for _, piece := range [...][]byte{a.head, a.tail} {
		for len(piece) > 0 {
			n, err := syscall.Write(int(fd), piece)
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
			piece = piece[n:]
		}
	}
	return true
}

// attemptWrite writes without waiting, and says how many bytes of both pieces
// together were taken. mu is held.
func (c *tcpConn) attemptWrite(head, tail []byte) (int, error) {
	c.attempt = attempt{head: head, tail: tail}
	err := c.raw.Write(c.try)
	n := c.attempt.n
	if err == nil {
		err = c.attempt.err
	}
	c.attempt = attempt{}
	return n, err
}
