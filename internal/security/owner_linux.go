package security

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// listenerOf returns the id of the user whose process listens on a port of the loopback
// interface or of all interfaces. known is false if there is no such process, or if that cannot
// be determined.
func listenerOf(port int) (uid int, known bool) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() && !known {
			uid, known = listensAt(lines.Text(), port)
		}
		f.Close()
		if known {
			return uid, true
		}
	}
	return 0, false
}

// listensAt parses a line of /proc/net/tcp or tcp6. It reports whether the line is a listener
// on the port, at the loopback address or at all addresses, and the id of its user.
func listensAt(line string, port int) (uid int, ok bool) {
	const listening = "0A"
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[3] != listening {
		return 0, false
	}
	address, portText, _ := strings.Cut(fields[1], ":")
	if n, err := strconv.ParseUint(portText, 16, 16); err != nil || int(n) != port {
		return 0, false
	}
	switch {
	case strings.Trim(address, "0") == "": // all addresses
	case len(address) == 8 && strings.HasSuffix(address, "7F"): // 127.0.0.0/8 in little endian
	case address == "00000000000000000000000001000000": // ::1
	case strings.HasPrefix(address, "0000000000000000FFFF0000") && strings.HasSuffix(address, "7F"):
	default:
		return 0, false
	}
	uid, err := strconv.Atoi(fields[7])
	return uid, err == nil
}

// checkListener returns an error if a process of another user listens on the port, since this
// user's token would be sent to it. It allows a process of root, which may be a service for
// other users.
func checkListener(port int) error {
	uid, known := listenerOf(port)
	if !known || uid == os.Getuid() || uid == 0 {
		return nil
	}
	return fmt.Errorf("user %d listens on port %d, and the token for it is this user's, %d: it would be given away; if that is the job manager you want, give its token with --token-file", uid, port, os.Getuid())
}
