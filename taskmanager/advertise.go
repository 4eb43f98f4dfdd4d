package taskmanager

import (
	"net"
	"time"

	"github.com/superstep-ml/superstep/internal/security"
)

// lookUp bounds how long the job manager's host name may take to be resolved.
const lookUp = 5 * time.Second

// advertised returns the default of Config.Advertise: the host by which other machines reach
// the workers of this machine. It uses the machine's name only if no address is known: many
// machines resolve their own name to the loopback interface, and other machines often cannot
// resolve the name.
func advertised(jobManager, host, listen string) string {
	if ip := net.ParseIP(listen); listen != "" && (ip == nil || !ip.IsUnspecified()) {
		return listen
	}
	if host != "" {
		return host
	}
	// Dialling UDP sends no packet. The system only looks up the route and its local address.
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

// loopbackOnly reports whether workers advertise a loopback address although the job manager's
// address is not a loopback address. Then workers on other machines cannot reach these workers.
func (c *Config) loopbackOnly() bool {
	heard, err := security.IsLoopback(net.JoinHostPort(c.Advertise, "0"))
	if err != nil || !heard {
		return false
	}
	asked, err := security.IsLoopback(c.JobManager)
	return err == nil && !asked
}
