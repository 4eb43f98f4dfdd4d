//go:build !unix

package mesh

// attempt is not used: on these systems a socket cannot be written without waiting.
type attempt struct{}

func (a *attempt) write(uintptr) bool { return true }

// attemptWrite writes nothing, so that post queues the whole message.
func (c *tcpConn) attemptWrite(head, tail []byte) (int, error) { return 0, nil }
