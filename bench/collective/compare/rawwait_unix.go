//go:build unix

package main

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// waitingBy wraps a connection so that its reader waits in a way. The connection
// is the wrapper's afterwards.
func waitingBy(way string, c net.Conn) (io.ReadWriteCloser, error) {
	if way == netpoll {
		return c, nil
	}
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil, errors.New("the connection is not of TCP")
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return nil, err
	}
	d := &descriptor{polls: way == polling}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		if d.fd, failed = syscall.Dup(int(fd)); failed == nil {
			failed = syscall.SetNonblock(d.fd, d.polls)
		}
	}); err != nil {
		return nil, err
	}
	return d, errors.Join(failed, c.Close())
}

// descriptor is a socket that the runtime's poller does not know.
type descriptor struct {
	fd    int
	polls bool
}

func (d *descriptor) Read(b []byte) (int, error) {
	for {
		n, err := syscall.Read(d.fd, b)
		switch {
		case err == nil && n == 0 && len(b) > 0:
			return 0, io.EOF
		case err == nil:
			return n, nil
		case err != syscall.EINTR && !(d.polls && err == syscall.EAGAIN):
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
		if err != nil && err != syscall.EINTR && !(d.polls && err == syscall.EAGAIN) {
			return done, err
		}
	}
}

func (d *descriptor) Close() error { return syscall.Close(d.fd) }
