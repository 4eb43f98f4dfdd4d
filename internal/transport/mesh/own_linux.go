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

// ownSocket is a socket outside the runtime's poller. A reader sleeps in the kernel, and
// arriving bytes wake only its thread. The poller would be woken first, by every arriving
// segment, and would have to find the goroutine and a thread for it, which takes longer than a
// short message.
type ownSocket struct {
	fd             int  // in blocking mode
	oversubscribed bool // yield the core before sleeping
	yield          func()
	stays          int // number of further waits without yielding
	use            sync.RWMutex
	closed         bool
}

// Read reads the bytes that have arrived, and waits if there are none.
//
// If this host has more ranks than cores, Read first checks for bytes and then yields the core
// once: mostly the rank that runs then sends the awaited bytes, which saves a sleep and a
// wake-up. It yields only once, so that a long wait costs no more. If another program took the
// core, it does not yield for a while.
func (s *ownSocket) Read(p []byte) (int, error) {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.oversubscribed && len(p) > 0 && !s.closed {
		if n, err := s.look(p); n > 0 || err != nil {
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

// yieldCore yields the core to another thread, unless one has lately kept it for longer than a
// rank needs: with Linux, a thread that yields loses a whole time slice. Beside other programs,
// a thread that yields again and again would not run for seconds, and neither would the
// goroutines bound to it.
func (s *ownSocket) yieldCore() {
	if s.stays > 0 {
		s.stays--
		return
	}
	began := time.Now()
	s.yield()
	if time.Since(began) > longYield {
		s.stays = staysAfter
	}
}

// longYield is longer than a rank keeps the core. After a longer yield, staysAfter waits follow
// without yielding.
const (
	longYield  = time.Millisecond
	staysAfter = 255
)

// schedYield yields by a system call that the runtime knows about, since it may take long.
func schedYield() { _, _, _ = syscall.Syscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// look reads available bytes into p without waiting. The system reports an error such as a
// reset only once: a later read would find the end of the connection.
func (s *ownSocket) look(p []byte) (int, error) {
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

// Close wakes the waiting goroutines and closes the socket when they are gone.
func (s *ownSocket) Close() error {
	s.use.RLock()
	if !s.closed {
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR) // fails if the peer has closed first
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

// aloneAfter is the number of consecutive runs with Alone(true) before the socket leaves the
// runtime's poller. It doubles with every return, since leaving and returning takes as long as
// a message, and allocates.
const aloneAfter = 8

// mostReturns bounds the doubling.
const mostReturns = 16

// looks is the number of runs between two checks of the number of processors.
const looks = 64

// Alone implements SerialWaiter.
func (c *tcpConn) Alone(alone bool) {
	c.serialRuns++
	switch {
	case alone && c.own != nil:
		if c.serialRuns%looks == 0 && !c.mayOwn() {
			c.move(c.giveBack)
		}
	case alone:
		if c.serialRuns > aloneAfter<<c.returns && c.raw != nil && c.mayOwn() {
			c.move(c.takeOut)
		}
	default:
		c.serialRuns = 0
		if c.own != nil {
			c.move(c.giveBack)
		}
	}
}

// mayOwn reports whether a thread of this rank may wait in the kernel. Such a thread keeps a
// processor of the runtime until the runtime takes it away, so half of the processors are left
// to others.
func (c *tcpConn) mayOwn() bool { return c.place < runtime.GOMAXPROCS(0)/2 }

// move moves the socket into or out of the poller. If that fails, or if something is still
// being sent in the background, the socket stays where it is, which costs only time.
func (c *tcpConn) move(how func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.draining && c.ended() == nil {
		_ = how()
		c.serialRuns = 0
	}
}

// takeOut takes the socket out of the runtime's poller. mu is held.
func (c *tcpConn) takeOut() error {
	fd, failed := -1, error(nil)
	err := c.raw.Control(func(from uintptr) { fd, failed = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0) })
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(fd, false); err != nil { // applies to both copies
		_ = unix.Close(fd)
		return err
	}
	// The poller forgets a socket when it is closed. The copy keeps it connected.
	_ = c.sock.Close()
	c.own = &ownSocket{fd: fd, oversubscribed: c.t.oversubscribed, yield: schedYield}
	return nil
}

// giveBack gives the socket back to the runtime's poller. mu is held.
func (c *tcpConn) giveBack() error {
	fd, err := unix.FcntlInt(uintptr(c.own.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "connection") // does not check the mode
	defer file.Close()
	conn, err := net.FileConn(file) // makes a copy, and sets the mode of all copies
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
	c.own, c.returns = nil, min(c.returns+1, mostReturns)
	return nil
}

// restoreConn restores a connection that is in the poller again.
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
