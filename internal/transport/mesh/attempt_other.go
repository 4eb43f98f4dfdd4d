//go:build !unix

package mesh

// attempt is empty where sockets cannot be written without waiting.
type attempt struct{}

func (a *attempt) write(uintptr) bool { return true }

// attemptWrite leaves everything to the queue.
func (c *tcpConn) attemptWrite(head, tail []byte) (int, error) { return 0, nil }
