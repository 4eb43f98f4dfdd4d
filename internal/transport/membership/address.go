package membership

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// advertised returns the address at which other processes can reach a data listener at the
// given address. An unspecified host is replaced by socket, the local host of the connection to
// the coordinator. If socket is invalid, the host in the result is empty, and the coordinator
// sets it. If a host name resolves only to loopback addresses on this machine, it is replaced
// by one of them; the coordinator then checks whether all processes can reach this address.
func advertised(ctx context.Context, address string, socket netip.Addr) (string, error) {
	if address == "" {
		return "", nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("data address %q: %w", address, err)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		if !socket.IsValid() {
			return net.JoinHostPort("", port), nil
		}
		return net.JoinHostPort(socket.Unmap().String(), port), nil
	} else if err == nil {
		return address, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", fmt.Errorf("data address %q: %w", address, err)
	}
	for _, ip := range ips {
		if !ip.Unmap().IsLoopback() {
			return address, nil
		}
	}
	return net.JoinHostPort(ips[0].Unmap().String(), port), nil
}

// addresses completes and checks the data addresses of the processes. It is called when all
// processes have connected, because the machine of each process is known only then.
func (c *core) addresses() error {
	first := &c.members[0]
	if host, port, err := net.SplitHostPort(first.hello.address); err == nil && host == "" {
		first.hello.address = net.JoinHostPort(c.localAddress().String(), port)
	}
	for a := range c.members {
		m := &c.members[a]
		host, _, err := net.SplitHostPort(m.hello.address)
		if err != nil {
			continue // the process has no data listener
		}
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Unmap().IsLoopback() {
			continue
		}
		for b := range c.members {
			if c.members[b].machine() != m.machine() {
				return fmt.Errorf("process %d accepts data connections at %s, which process %d on another machine (%s) cannot reach: "+
					"let it listen on an address of the network", a, m.hello.address, b, c.members[b].addressFor(m))
			}
		}
	}
	return nil
}

// localAddress returns the address at which other processes reach this process: the local
// address of the connection of the first process on another machine, or the loopback address if
// all processes are on this machine.
func (c *core) localAddress() netip.Addr {
	for i := range c.members {
		if m := &c.members[i]; m.machine().IsValid() {
			return m.via
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// machine returns the remote address of the process's connection, which identifies the
// process's machine. It returns the invalid address if the process is on the coordinator's
// machine.
func (m *member) machine() netip.Addr {
	if !m.from.IsValid() || m.from.IsLoopback() || m.from == m.via {
		return netip.Addr{}
	}
	return m.from
}

// addressFor returns the address at which other, a process on another machine, can reach the
// machine of m.
func (m *member) addressFor(other *member) string {
	if at := m.machine(); at.IsValid() {
		return at.String()
	}
	return other.via.String()
}
