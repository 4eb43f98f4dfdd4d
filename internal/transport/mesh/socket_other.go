//go:build !unix

package mesh

// setOptions leaves the sockets as they are: the options are for tests, and for
// systems that have them.
func setOptions(uintptr, *TCPConfig) error { return nil }
