//go:build unix && !linux

package mesh

func setOptions(fd uintptr, c *TCPConfig) error { return setBuffers(int(fd), c) }
