package client

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// DefaultPort is the default port of job managers.
const DefaultPort = 6123

// ParseAddress parses "host:port", or "host" with DefaultPort. It returns the address as
// host:port, and the port. IPv6 addresses with a port must be in brackets.
func ParseAddress(text string) (address string, port int, err error) {
	text = strings.TrimSpace(text)
	bad := func(why string) (string, int, error) {
		return "", 0, fmt.Errorf("%q is no address of a job manager (%s): want host:port, such as localhost:%d", text, why, DefaultPort)
	}
	if text == "" {
		return bad("it is empty")
	}
	if strings.Contains(text, "://") || strings.ContainsAny(text, "/ \t\r\n") {
		return bad("it has more than a host and a port")
	}
	host, portText := text, ""
	switch colons := strings.Count(text, ":"); {
	case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]"):
		host = text[1 : len(text)-1]
	case colons > 1 && !strings.HasPrefix(text, "["):
		if !isIP(text) {
			return bad("it has several colons")
		}
	case colons > 0:
		if host, portText, err = net.SplitHostPort(text); err != nil {
			return bad(err.Error())
		}
		if portText == "" {
			return bad("the port is empty")
		}
	}
	switch {
	case host == "":
		return bad("the host is empty")
	case strings.ContainsAny(host, "[]"), strings.Contains(host, ":") && !isIP(host):
		return bad("what is in brackets is no IPv6 address")
	}
	port = DefaultPort
	if portText != "" {
		if port, err = strconv.Atoi(portText); err != nil || port < 1 || port > 65535 {
			return bad(fmt.Sprintf("%q is no port", portText))
		}
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), port, nil
}

// isIP reports whether host is an IP address, with or without a zone.
func isIP(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
