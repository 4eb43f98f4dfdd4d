//go:build unix

package main

import (
	"io"
	"net"
	"os"
	"syscall"
)

// waitingBy returns a connection to the same socket as c, whose Read and Write wait in the given
// way: netpoll, blocking or polling. If way is netpoll, the result is c. Otherwise the result
// is a second descriptor of the socket, and both the result and c must be closed.
func waitingBy(way string, c *net.TCPConn) (io.ReadWriteCloser, error) {
	if way == netpoll {
		return c, nil
	}
	f, err := c.File()
	if err != nil {
		return nil, err
	}
	d := &descriptor{File: f, fd: int(f.Fd()), polls: way == polling}
	return d, syscall.SetNonblock(d.fd, d.polls)
}

// descriptor is a socket that does not use the poller of the Go runtime. Read and Write make
// system calls that block, or, if polls is true, repeat calls that do not block.
type descriptor struct {
	*os.File
	fd    int
	polls bool
}

// again reports whether a system call that returned err must be repeated.
func (d *descriptor) again(err error) bool {
	return err == syscall.EINTR || d.polls && err == syscall.EAGAIN
}

func (d *descriptor) Read(b []byte) (int, error) {
	for {
		n, err := syscall.Read(d.fd, b)
		switch {
		case err == nil && n == 0 && len(b) > 0:
			return 0, io.EOF
		case err == nil:
			return n, nil
		case !d.again(err):
			return 0, err
		}
	}
}

func (d *descriptor) Write(b []byte) (int, error) {
	for done := 0; ; {
		n, err := syscall.Write(d.fd, b[done:])
		if err == nil {
			done += n
		}
		if done == len(b) {
			return done, nil
		}
		if err != nil && !d.again(err) {
			return done, err
		}
	}
}
