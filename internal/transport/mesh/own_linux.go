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

// ownSocket is a socket that the runtime's poller does not know. Who reads sleeps in
// the kernel, and what comes wakes that thread alone. The poller would be woken first,
// by every segment that comes, and would have to find the goroutine and a thread for
// it, which takes longer than a short message takes.
type ownSocket struct {
	fd      int  // in blocking mode
	crowded bool // let others have the core before sleeping
	yield   func()
	stays   int // how many waits go by without yielding
	use     sync.RWMutex
	closed  bool
}

// Read reads what is there, and waits for something if nothing is.
//
// Where more ranks than cores wait on this host it first looks, and lets another have
// the core: mostly that one sends what is waited for, and nobody has to be put to sleep
// and woken up. It does so once, so that waiting long costs no more, and not for a while
// where somebody else took the core.
func (s *ownSocket) Read(p []byte) (int, error) {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.crowded && len(p) > 0 && !s.closed {
		if n, err := s.look(p); n > 0 || err != nil {
			return n, err
		}
		s.giveWay()
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

// giveWay lets another thread have the core, unless one has lately kept it for longer than
// a rank needs: Linux takes a whole time slice from who gives way. A thread that does so
// again and again beside other programs would not run for seconds, with goroutines that
// nobody else can take from it.
func (s *ownSocket) giveWay() {
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

// longYield is longer than ranks take turns for, and staysAfter how many waits follow a
// longer one without giving way.
const (
	longYield  = time.Millisecond
	staysAfter = 255
)

// schedYield tells the runtime, since it may be for long.
func schedYield() { _, _, _ = syscall.Syscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// look reads what is there into p. An error such as a reset is told once by the system: who
// read after it would find the end of the connection.
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

// Close wakes whoever waits and closes the socket when they are gone.
func (s *ownSocket) Close() error {
	s.use.RLock()
	if !s.closed {
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR) // fails where the peer was first
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

// aloneAfter is how many runs in a row must be those of a goroutine alone before the
// socket leaves the runtime's poller; twice as many after every return, since there and
// back takes as long as a message, and allocates.
const aloneAfter = 8

// mostReturns bounds the doubling.
const mostReturns = 16

// looks is how many runs go by between two looks at the number of processors.
const looks = 64

// Alone is Loner's.
func (c *tcpConn) Alone(alone bool) {
	c.lonely++
	switch {
	case alone && c.own != nil:
		if c.lonely%looks == 0 && !c.mayOwn() {
			c.move(c.giveBack)
		}
	case alone:
		if c.lonely > aloneAfter<<c.returns && c.raw != nil && c.mayOwn() {
			c.move(c.takeOut)
		}
	default:
		c.lonely = 0
		if c.own != nil {
			c.move(c.giveBack)
		}
	}
}

// mayOwn says whether a thread of this rank's may wait in the kernel. It has a processor
// of the runtime's until that is taken away, so that half of them are left to others.
func (c *tcpConn) mayOwn() bool { return c.place < runtime.GOMAXPROCS(0)/2 }

// move changes who waits for the socket. What cannot be changed stays as it is, which
// costs time and nothing else; so does what is still being sent in the background.
func (c *tcpConn) move(how func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.draining && c.ended() == nil {
		_ = how()
		c.lonely = 0
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
	if err := unix.SetNonblock(fd, false); err != nil { // of both copies
		_ = unix.Close(fd)
		return err
	}
	// The poller forgets a socket when it is closed. The copy keeps it connected.
	_ = c.sock.Close()
	c.own = &ownSocket{fd: fd, crowded: c.t.crowded, yield: schedYield}
	return nil
}

// giveBack gives the socket back to the runtime's poller. mu is held.
func (c *tcpConn) giveBack() error {
	fd, err := unix.FcntlInt(uintptr(c.own.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "connection") // does not look at the mode
	defer file.Close()
	conn, err := net.FileConn(file) // a copy, which sets the mode of all
	if err != nil {
		_ = unix.SetNonblock(fd, false)
		return err
	}
	tcp, raw, err := c.known(conn)
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

// known makes a connection that the poller knows again what it was.
func (c *tcpConn) known(conn net.Conn) (*net.TCPConn, syscall.RawConn, error) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, nil, os.ErrInvalid
	}
	raw, err := tcp.SyscallConn()
	if err == nil {
		err = tcp.SetKeepAliveConfig(c.t.cfg.keepAlive()) // FileConn has its own idea
	}
	return tcp, raw, err
}
