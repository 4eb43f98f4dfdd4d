package membership

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// advertised is the address under which others find a data listener: the host of
// the socket that reaches the coordinator if the listener is bound to all of them,
// and the loopback address behind a name that, here, means only that; the
// coordinator decides whether that will do. Without a socket an unspecified host
// stays, for the coordinator to fill in.
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

// addresses completes and checks where the processes accept data connections, now
// that it is known from where they reach this one.
func (c *core) addresses() error {
	first := &c.members[0]
	if host, port, err := net.SplitHostPort(first.hello.address); err == nil && host == "" {
		first.hello.address = net.JoinHostPort(c.near().String(), port)
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

// near is the address of this process as others see it: that by which the first of
// those on other machines came, or the loopback address if there are none.
func (c *core) near() netip.Addr {
	for i := range c.members {
		if m := &c.members[i]; m.machine().IsValid() {
			return m.via
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// machine tells processes on one machine from others: the address from which a
// process came, and the invalid one for whatever came from the coordinator's.
func (m *member) machine() netip.Addr {
	if !m.from.IsValid() || m.from.IsLoopback() || m.from == m.via {
		return netip.Addr{}
	}
	return m.from
}

// place says where m is, for one who is elsewhere.
func (m *member) place(other *member) string {
	if at := m.machine(); at.IsValid() {
		return at.String()
	}
	return other.via.String()
}
