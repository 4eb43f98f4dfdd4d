//go:build !unix

package main

import (
	"fmt"
	"io"
	"net"
)

// waitingBy returns c if way is netpoll. This system supports no other way to wait.
func waitingBy(way string, c *net.TCPConn) (io.ReadWriteCloser, error) {
	if way != netpoll {
		return nil, fmt.Errorf("this system has no %s sockets", way)
	}
	return c, nil
}
