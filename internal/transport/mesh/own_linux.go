package mesh

import (
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ownSocket is a socket outside the runtime's poller. A reader sleeps in a blocking system
// call, and arriving bytes wake only the reader's thread. With the poller, every arriving
// segment would first wake the thread that polls, and this thread would have to find the
// goroutine and a thread for it. That takes longer than the transfer of a short message.
type ownSocket struct {
	fd             int  // descriptor in blocking mode
	oversubscribed bool // Read yields the core before it sleeps, as the host has more processes than cores
	yield          func()
	skipYields     int // number of next calls of yieldCore that do not yield
	use            sync.RWMutex
	closed         bool
}

// Read reads the bytes that have arrived. If no bytes have arrived, it waits.
//
// If this host has more processes of the group than cores, Read first looks for arrived bytes
// and then yields the core once before it sleeps. In most cases the rank that gets the core
// sends the awaited bytes, so that Read need not sleep. As Read yields only once, a long wait
// does not keep the core busy. If another program got the core, the following calls do not
// yield for some time.
func (s *ownSocket) Read(p []byte) (int, error) {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.oversubscribed && len(p) > 0 && !s.closed {
		if n, err := s.readAvailable(p); n > 0 || err != nil {
			return n, err
		}
		s.yieldCore()
	}
	for !s.closed {
		n, err := syscall.Read(s.fd, p)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
	return 0, net.ErrClosed
}

// yieldCore yields the core to another thread. If a yield takes longer than longYield, another
// program got the core, and the next skippedYields calls do not yield. On Linux, a thread that
// yields loses its whole time slice. If other programs compete for the core, a thread that
// yields repeatedly may not run for seconds, and neither may the goroutines that are bound to
// it.
func (s *ownSocket) yieldCore() {
	if s.skipYields > 0 {
		s.skipYields--
		return
	}
	began := time.Now()
	s.yield()
	if time.Since(began) > longYield {
		s.skipYields = skippedYields
	}
}

// longYield is longer than the time for which a rank uses the core. After a yield that takes
// longer, yieldCore does not yield in the next skippedYields calls.
const (
	longYield     = time.Millisecond
	skippedYields = 255
)

// schedYield yields the core. It uses syscall.Syscall, which notifies the runtime, since the
// call may take a long time.
func schedYield() { _, _, _ = syscall.Syscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// readAvailable reads available bytes into p without waiting. It must return an error such as a
// reset, as the operating system reports a reset only once: a later read would return the end
// of the stream.
func (s *ownSocket) readAvailable(p []byte) (int, error) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(s.fd),
		uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), syscall.MSG_DONTWAIT, 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case syscall.EAGAIN, syscall.EINTR:
		return 0, nil
	}
	return 0, os.NewSyscallError("read", errno)
}

// Write writes all of p.
func (s *ownSocket) Write(p []byte) (n int, err error) {
	s.use.RLock()
	defer s.use.RUnlock()
	for n < len(p) {
		if s.closed {
			return n, net.ErrClosed
		}
		k, err := syscall.Write(s.fd, p[n:])
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return n, os.NewSyscallError("write", err)
		default:
			n += k
		}
	}
	return n, nil
}

// Close wakes the goroutines that wait in Read or Write, and closes the socket when they have
// returned.
func (s *ownSocket) Close() error {
	s.use.RLock()
	if !s.closed {
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR) // fails if the peer has closed the connection before
	}
	s.use.RUnlock()
	s.use.Lock()
	defer s.use.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return os.NewSyscallError("close", unix.Close(s.fd))
}

// aloneAfter is the number of consecutive runs with Alone(true) after which the socket is taken
// out of the runtime's poller. The number doubles each time the socket is returned to the
// poller, since taking it out and returning it takes as long as a message, and allocates
// memory.
const aloneAfter = 8

// maxReturns is the maximum number of doublings of aloneAfter.
const maxReturns = 16

// mayOwnPeriod is the number of runs between two calls of mayOwn for a socket that is out of the
// poller.
const mayOwnPeriod = 64

// Alone implements SerialWaiter.
func (c *tcpConn) Alone(alone bool) {
	c.serialRuns++
	switch {
	case alone && c.own != nil:
		if c.serialRuns%mayOwnPeriod == 0 && !c.mayOwn() {
			c.changePoller(c.giveBack)
		}
	case alone:
		if c.serialRuns > aloneAfter<<c.returns && c.raw != nil && c.mayOwn() {
			c.changePoller(c.takeOut)
		}
	default:
		c.serialRuns = 0
		if c.own != nil {
			c.changePoller(c.giveBack)
		}
	}
}

// mayOwn reports whether this rank may block a thread in a system call. Such a thread holds a
// processor (P) of the runtime until the runtime retakes the processor. So the number of ranks
// that may block a thread is at most half the number of processors.
func (c *tcpConn) mayOwn() bool { return c.localIndex < runtime.GOMAXPROCS(0)/2 }

// changePoller calls change, which is takeOut or giveBack. If change fails, or if posted
// messages are still being written in the background, the socket stays where it is, which
// affects only speed.
func (c *tcpConn) changePoller(change func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.draining && c.ended() == nil {
		_ = change()
		c.serialRuns = 0
	}
}

// takeOut takes the socket out of the runtime's poller. The caller holds mu.
func (c *tcpConn) takeOut() error {
	fd, failed := -1, error(nil)
	err := c.raw.Control(func(from uintptr) { fd, failed = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0) })
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(fd, false); err != nil { // this applies to both descriptors of the socket
		_ = unix.Close(fd)
		return err
	}
	// Closing c.sock removes it from the poller. The duplicate fd keeps the connection open.
	_ = c.sock.Close()
	c.own = &ownSocket{fd: fd, oversubscribed: c.t.oversubscribed, yield: schedYield}
	return nil
}

// giveBack returns the socket to the runtime's poller. The caller holds mu.
func (c *tcpConn) giveBack() error {
	fd, err := unix.FcntlInt(uintptr(c.own.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "connection") // NewFile does not change the blocking mode
	defer file.Close()
	conn, err := net.FileConn(file) // duplicates fd, and makes all its duplicates non-blocking
	if err != nil {
		_ = unix.SetNonblock(fd, false)
		return err
	}
	tcp, raw, err := c.restoreConn(conn)
	if err != nil {
		_ = conn.Close()
		_ = unix.SetNonblock(fd, false)
		return err
	}
	c.sock, c.conn, c.raw = tcp, tcp, raw
	_ = unix.Close(c.own.fd)
	c.own, c.returns = nil, min(c.returns+1, maxReturns)
	return nil
}

// restoreConn returns conn, which is in the poller again, as a *net.TCPConn, and its RawConn.
// It restores the keep-alive settings.
func (c *tcpConn) restoreConn(conn net.Conn) (*net.TCPConn, syscall.RawConn, error) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, nil, os.ErrInvalid
	}
	raw, err := tcp.SyscallConn()
	if err == nil {
		err = tcp.SetKeepAliveConfig(c.t.cfg.keepAlive()) // FileConn sets other values
	}
	return tcp, raw, err
}
