package security

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// through sends a request to h and returns the status and the error in its answer. local is the
// local address of the connection.
func through(t *testing.T, h http.Handler, method, host string, header http.Header, local string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, "http://x/api/v1/jobs", nil)
	r.Host = host
	for name, values := range header {
		r.Header[name] = values
	}
	if local != "" {
		address, err := net.ResolveTCPAddr("tcp", local)
		require.NoError(t, err)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, address))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code == http.StatusNoContent {
		return w.Code, ""
	}
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var body map[string]string
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
	return w.Code, body["error"]
}

var fine = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"}

func TestHostGuard(t *testing.T) {
	h := HostGuard([]string{"Manager.example.com", "proxy.example.com:8443", "[fd00::1]:8081", "10.9.9.9"}, fine)
	for _, c := range []struct {
		host, origin, local string
		want                string // kind of refusal; "" if the request must pass
	}{
		{host: "localhost:8081"},
		{host: "LOCALHOST.:8081"},
		{host: "localhost"},
		{host: "127.0.0.1:8081"},
		{host: "[::1]:8081"},
		{host: "[::1]"},
		{host: "manager.example.com"},
		{host: "MANAGER.example.com.:8081"},
		{host: "proxy.example.com:8443"},
		{host: "[fd00::1]:8081"},
		{host: "10.9.9.9:1"},
		{host: "10.1.2.3:8081", local: "10.1.2.3:8081"},
		{host: "[fe80::1]:8081", local: "[fe80::1%lo]:8081"},
		{host: "10.1.2.3:8081", local: "10.1.2.4:8081", want: "host"},
		{host: "10.1.2.3:8081", want: "host"},
		{host: "", want: "host"},
		{host: ":8081", want: "host"},
		{host: "evil.example.com:8081", want: "host"},
		{host: "evil.example.com:8081", local: "127.0.0.1:8081", want: "host"},
		{host: "localhost.evil.example.com", want: "host"},
		{host: "proxy.example.com:8081", want: "host"},
		{host: "proxy.example.com", want: "host"},
		{host: "127.0.0.1.evil.example.com", want: "host"},
		{host: "evil@localhost:8081", want: "host"},
		{host: "localhost:8081", origin: "http://localhost:8081"},
		{host: "localhost:8081", origin: "https://localhost:8081"},
		{host: "localhost", origin: "http://localhost"},
		{host: "localhost:80", origin: "http://localhost"},
		{host: "localhost", origin: "https://localhost:443"},
		{host: "localhost:8081", origin: "http://manager.example.com:3000"},
		{host: "localhost:8081", origin: "https://proxy.example.com:8443"},
		{host: "10.1.2.3:8081", origin: "http://10.1.2.3:8081", local: "10.1.2.3:8081"},
		{host: "localhost:8081", origin: "http://localhost:3000", want: "pages"},
		{host: "localhost:8081", origin: "http://127.0.0.1:8081", want: "pages"},
		{host: "localhost:8081", origin: "http://evil.example.com", want: "pages"},
		{host: "localhost:8081", origin: "http://evil.example.com:8081", want: "pages"},
		{host: "localhost:8081", origin: "https://proxy.example.com", want: "pages"},
		{host: "localhost:8081", origin: "null", want: "pages"},
		{host: "localhost:8081", origin: "file://localhost:8081", want: "pages"},
		{host: "localhost:8081", origin: "http://", want: "pages"},
		{host: "localhost:8081", origin: "::", want: "pages"},
		{host: "evil.example.com", origin: "http://evil.example.com", want: "host"},
	} {
		for _, method := range methods {
			header := http.Header{}
			if c.origin != "" {
				header.Set("Origin", c.origin)
			}
			code, text := through(t, h, method, c.host, header, c.local)
			switch c.want {
			case "":
				require.Equal(t, http.StatusNoContent, code, "%+v: %s", c, text)
			case "host":
				require.Equal(t, http.StatusForbidden, code, "%+v", c)
				require.Contains(t, text, "is not one of this server's")
			case "pages":
				require.Equal(t, http.StatusForbidden, code, "%+v", c)
				require.Contains(t, text, "may not use this server")
			}
		}
	}
	code, _ := through(t, h, "GET", "localhost", http.Header{"Origin": {"http://localhost", "http://localhost"}}, "")
	require.Equal(t, http.StatusForbidden, code)
	code, _ = through(t, h, "GET", "localhost", http.Header{"Origin": {""}}, "")
	require.Equal(t, http.StatusForbidden, code)
}

func TestHostGuardOnAServer(t *testing.T) {
	s := httptest.NewServer(HostGuard(nil, fine))
	defer s.Close()
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL, nil)
	require.NoError(t, err)
	answer, err := s.Client().Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusNoContent, answer.StatusCode)
	r.Host = "evil.example.com"
	answer, err = s.Client().Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
}

func TestBearerToken(t *testing.T) {
	token, other := newToken(t), newToken(t)
	h := BearerToken(token, fine)
	for _, method := range methods {
		for _, c := range []struct {
			shown []string
			code  int
			want  string
		}{
			{[]string{"Bearer " + token.Reveal()}, http.StatusNoContent, ""},
			{[]string{"bearer  " + token.Reveal()}, http.StatusNoContent, ""},
			{nil, http.StatusUnauthorized, "needs a token, and none was sent: send it as"},
			{[]string{""}, http.StatusUnauthorized, "not the token"},
			{[]string{"Bearer"}, http.StatusUnauthorized, "not the token"},
			{[]string{"Bearer "}, http.StatusUnauthorized, "not the token"},
			{[]string{token.Reveal()}, http.StatusUnauthorized, "not the token"},
			{[]string{"Basic " + token.Reveal()}, http.StatusUnauthorized, "not the token"},
			{[]string{"Bearer " + other.Reveal()}, http.StatusUnauthorized, "not the token"},
			{[]string{"Bearer " + token.Reveal() + "x"}, http.StatusUnauthorized, "not the token"},
			{[]string{"Bearer " + token.Reveal()[1:]}, http.StatusUnauthorized, "not the token"},
			{[]string{"Bearer " + token.Reveal(), "Bearer " + token.Reveal()}, http.StatusUnauthorized, "not the token"},
		} {
			code, text := through(t, h, method, "localhost", http.Header{"Authorization": c.shown}, "")
			require.Equal(t, c.code, code, "%q", c.shown)
			require.Contains(t, text, c.want)
			require.NotContains(t, text, token.Reveal())
		}
	}
	r := httptest.NewRequest("GET", "http://localhost/?token="+token.Reveal(), nil)
	r.AddCookie(&http.Cookie{Name: "token", Value: token.Reveal()})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.Equal(t, `Bearer realm="superstep"`, w.Header().Get("WWW-Authenticate"))

	code, _ := through(t, BearerToken(Token{}, fine), "GET", "localhost", http.Header{"Authorization": {"Bearer "}}, "")
	require.Equal(t, http.StatusUnauthorized, code, "the zero Token must not be accepted")
}

func FuzzHostGuard(f *testing.F) {
	f.Add("localhost:8081", "http://localhost:8081")
	f.Add("[::1", "http://[::1")
	f.Add("evil.example.com", "null")
	f.Fuzz(func(t *testing.T, host, origin string) {
		h := HostGuard([]string{"allowed.example.com"}, fine)
		r := httptest.NewRequest("POST", "http://x/", nil)
		r.Host = host
		r.Header.Set("Origin", origin)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusNoContent {
			name, _ := splitHost(host)
			require.True(t, loopbackHost(name) || name == "allowed.example.com", "%q", host)
			require.Regexp(t, "(?i)^https?://", origin)
		}
	})
}
