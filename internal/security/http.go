package security

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// HostGuard returns a handler that passes requests of any method to next if their Host and
// Origin are permitted. The Host may be localhost or a loopback address, an allowed host, or
// the local address of the connection. The Origin, if there is one, may be the Host or an
// allowed host. An allowed host is a name or address, with a port or for all ports. HostGuard
// protects a server that trusts its network from web pages of others. If the host name of such
// a page was made to resolve to this server (DNS rebinding), the browser still sends this name
// as Host. If the page posts to this server, the browser sends the page's Origin.
func HostGuard(allowed []string, next http.Handler) http.Handler {
	g := &hostGuard{allowed: map[string]bool{}, next: next}
	for _, a := range allowed {
		host, port := splitHost(a)
		g.allowed[joinHost(host, port)] = true
	}
	return g
}

type hostGuard struct {
	allowed map[string]bool // host or host:port
	next    http.Handler
}

func (g *hostGuard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, port := splitHost(r.Host)
	if !loopbackHost(host) && !g.has(host, port) && !arrivedAt(r, host) {
		refuse(w, http.StatusForbidden, fmt.Sprintf("the host %q is not one of this server's: reach it by another name, or have the job manager allow this one", r.Host))
		return
	}
	if origins := r.Header.Values("Origin"); len(origins) > 0 && (len(origins) > 1 || !g.originIs(origins[0], host, port)) {
		refuse(w, http.StatusForbidden, fmt.Sprintf("pages of %q may not use this server: have the job manager allow their host", origins[0]))
		return
	}
	g.next.ServeHTTP(w, r)
}

func (g *hostGuard) has(host, port string) bool {
	return host != "" && (g.allowed[host] || g.allowed[joinHost(host, port)])
}

// originIs reports whether origin is the origin of host and port, or an allowed host.
func (g *hostGuard) originIs(origin, host, port string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false // also "null", which any page can make the browser send
	}
	theirs, theirPort := splitHost(u.Host)
	if theirs == host && orDefault(theirPort, u.Scheme) == orDefault(port, u.Scheme) {
		return true
	}
	return g.has(theirs, theirPort)
}

func orDefault(port, scheme string) string {
	switch {
	case port != "":
		return port
	case scheme == "https":
		return "443"
	}
	return "80"
}

// splitHost splits text into host and port, either of which may be "". It returns the host in
// lower case, without brackets and final dot.
func splitHost(text string) (host, port string) {
	host = text
	if h, p, err := net.SplitHostPort(text); err == nil {
		host, port = h, p
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(strings.ToLower(host), "."), port
}

func joinHost(host, port string) string {
	if port == "" {
		return host
	}
	return net.JoinHostPort(host, port)
}

// arrivedAt reports whether host is the local IP address of the request's connection. Such a
// request used no host name, so there is no DNS rebinding.
func arrivedAt(r *http.Request, host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.AddrPort().Addr().Unmap().WithZone("") == ip.Unmap().WithZone("")
}

// BearerToken returns a handler that passes requests to next if they have t in their
// Authorization header (RFC 6750). A token in a cookie or the URL is not accepted: browsers
// send cookies and store URLs without being asked.
func BearerToken(t Token, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown := r.Header.Values("Authorization")
		if len(shown) == 0 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="superstep"`)
			refuse(w, http.StatusUnauthorized, noToken+`send it as "Authorization: Bearer <token>"; it is in the token file that the job manager names when it starts`)
			return
		}
		if len(shown) > 1 || !Equal(t, bearer(shown[0])) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="superstep", error="invalid_token"`)
			refuse(w, http.StatusUnauthorized, wrongToken+"it is in the token file that the job manager names when it starts")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuse answers a request with a status code and an error in JSON.
func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)                            // the answer is not HTML, and people read its text
	_ = e.Encode(map[string]string{"error": message}) // the client may have closed the connection
}
