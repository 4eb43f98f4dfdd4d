package security

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// CheckListen returns an error if other machines can reach the address, unless TLS is used or
// insecure is set, which means that the user accepts the risk. Unix sockets
// ("unix:/run/x.sock") can be reached only from this machine.
func CheckListen(address string, tls, insecure bool) error {
	local, err := IsLoopback(address)
	if err != nil {
		return err
	}
	if local || tls || insecure {
		return nil
	}
	return fmt.Errorf("listening on %s lets other machines in: give a certificate with --tls-cert and --tls-key (superstep tls init makes them), listen on localhost, or give --insecure to have all that is said, the token too, readable on the network", address)
}

// IsLoopback reports whether an address, host:port or unix:path, can be reached only from this
// machine. The only host name for which it returns true is localhost. An empty or unspecified
// host can be reached from every network.
func IsLoopback(address string) (bool, error) {
	if strings.HasPrefix(address, "unix:") {
		return true, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false, fmt.Errorf("address %q: it is not host:port, such as localhost:6123 or [::1]:6123", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false, fmt.Errorf("address %q: port %q is not a number from 0 to %d", address, port, 1<<16-1)
	}
	return loopbackHost(host), nil
}

// loopbackHost reports whether host, without a port, is localhost or an address of the loopback
// interface.
func loopbackHost(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() // also for IPv4 addresses in IPv6
}
