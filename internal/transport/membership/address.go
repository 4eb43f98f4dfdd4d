package membership

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// advertised returns the address by which others reach a data listener. If the listener is
// bound to all interfaces, the host is that of the socket to the coordinator. A name that
// resolves here only to the loopback address is replaced by that address; the coordinator
// decides whether that will do. Without a socket an unspecified host stays, for the coordinator
// to fill in.
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

// addresses completes and checks the data addresses of the processes, now that it is known from
// where each process reaches this one.
func (c *core) addresses() error {
	first := &c.members[0]
	if host, port, err := net.SplitHostPort(first.hello.address); err == nil && host == "" {
		first.hello.address = net.JoinHostPort(c.localAddress().String(), port)
	}
	for a := range c.members {
		m := &c.members[a]
		host, _, err := net.SplitHostPort(m.hello.address)
		if err != nil {
			continue // it has no data listener
		}
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Unmap().IsLoopback() {
			continue
		}
		for b := range c.members {
			if c.members[b].machine() != m.machine() {
				return fmt.Errorf("process %d accepts data connections at %s, which process %d on another machine (%s) cannot reach: "+
					"let it listen on an address of the network", a, m.hello.address, b, c.members[b].place(m))
			}
		}
	}
	return nil
}

// localAddress returns the address of this process as others see it: the one by which the first process
// on another machine came, or the loopback address if all are on this machine.
func (c *core) localAddress() netip.Addr {
	for i := range c.members {
		if m := &c.members[i]; m.machine().IsValid() {
			return m.via
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// machine identifies the machine of a process: by the address from which the process came, or
// the invalid address if that is the coordinator's machine.
func (m *member) machine() netip.Addr {
	if !m.from.IsValid() || m.from.IsLoopback() || m.from == m.via {
		return netip.Addr{}
	}
	return m.from
}

// place says where m is, for a process on another machine.
func (m *member) place(other *member) string {
	if at := m.machine(); at.IsValid() {
		return at.String()
	}
	return other.via.String()
}
