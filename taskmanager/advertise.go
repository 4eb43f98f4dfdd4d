package taskmanager

import (
	"net"
	"time"

	"github.com/superstep-ml/superstep/internal/security"
)

// lookUp bounds the search for the job manager's address.
const lookUp = 5 * time.Second

// advertised returns the host by which other machines reach the workers of this one, where the
// configuration names none. The machine's name is the last resort: many machines resolve their
// own name to the loopback interface, and others do not know it.
func advertised(jobManager, host, listen string) string {
	if ip := net.ParseIP(listen); listen != "" && (ip == nil || !ip.IsUnspecified()) {
		return listen
	}
	if host != "" {
		return host
	}
	// Nothing is sent: the system looks up the route and its local address.
	route, err := net.DialTimeout("udp", jobManager, lookUp)
	if err != nil {
		return hostFor(jobManager)
	}
	defer route.Close()
	here, ok := route.LocalAddr().(*net.UDPAddr)
	if !ok || here.Zone != "" || here.IP.IsUnspecified() {
		return hostFor(jobManager)
	}
	return here.IP.String()
}

// loopbackOnly reports whether other machines cannot reach the workers here, though there
// are others.
func (c *Config) loopbackOnly() bool {
	heard, err := security.IsLoopback(net.JoinHostPort(c.Advertise, "0"))
	if err != nil || !heard {
		return false
	}
	asked, err := security.IsLoopback(c.JobManager)
	return err == nil && !asked
}
