//go:build !linux

package security

// checkListener cannot tell here who listens on a port.
func checkListener(int) error { return nil }
