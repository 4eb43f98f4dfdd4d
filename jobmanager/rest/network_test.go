package rest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/security"
)

// occupied returns an address that is already in use.
func occupied(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// dial opens a connection with a deadline, so that the test fails instead of hanging.
func (s *site) dial() net.Conn {
	c, err := net.Dial("tcp", s.Address())
	require.NoError(s.t, err)
	require.NoError(s.t, c.SetDeadline(time.Now().Add(20*time.Second)))
	s.t.Cleanup(func() { c.Close() })
	return c
}

func (s *site) header(method, path, more string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%s\r\n", method, path, s.Address(), tokenText, more)
}

// TestLargeBodies requires that a body of 100 MB is refused before all of it is sent, with or
// without a Content-Length.
func TestLargeBodies(t *testing.T) {
	s := serve(t, newFake(t), nil)
	const size = 100 << 20
	for _, how := range []string{fmt.Sprintf("Content-Length: %d\r\n", size), "Transfer-Encoding: chunked\r\n"} {
		c := s.dial()
		_, err := io.WriteString(c, s.header("POST", "/api/v1/jobs", "Content-Type: application/json\r\n"+how))
		require.NoError(t, err)
		sent := make(chan int)
		go func() {
			chunk := []byte(fmt.Sprintf("%x\r\n%s\r\n", 64<<10, "{"+strings.Repeat(" ", 64<<10-1)))
			n := 0
			for n < size {
				k, err := c.Write(chunk)
				if n += k; err != nil {
					break
				}
			}
			sent <- n
		}()
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err, how)
		require.Equal(t, http.StatusRequestEntityTooLarge, r.StatusCode, how)
		require.Contains(t, readAll(t, r.Body), "larger than")
		require.Less(t, <-sent, size/2, how)
	}
	require.Empty(t, s.fake.submitted)
}

func TestGarbageOnThePort(t *testing.T) {
	s := serve(t, newFake(t), nil)
	random := make([]byte, 1<<12)
	for i, source := 0, rand.New(rand.NewPCG(1, 2)); i < len(random); i++ {
		random[i] = byte(source.Uint32())
	}
	for _, garbage := range []string{
		string(random), strings.Repeat("A", 1<<20), "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
		"GET /api/v1/jobs HTTP/1.1\r\n\r\n", "GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n", s.header("POST", "/api/v1/jobs", "Content-Length: -1\r\n"),
		s.header("POST", "/api/v1/jobs", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), s.header("GET", "/healthz", "A: "+strings.Repeat("x", 1<<17)+"\r\n"), "\r\n\r\n",
	} {
		c := s.dial()
		_, _ = io.WriteString(c, garbage) // the server may close the connection before it has read everything
		_ = c.(*net.TCPConn).CloseWrite()
		answer, _ := io.ReadAll(c)
		require.NotContains(t, string(answer), "HTTP/1.1 2", "%.80q", garbage)
	}
	r, err := s.get(client(t), "/api/v1/jobs")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode)
	readAll(t, r.Body)
}

// TestRestingConnections opens more idle connections than are allowed. Other clients must still
// be able to connect, and the connection of a request in progress must stay open.
func TestRestingConnections(t *testing.T) {
	const limit = 48
	s := serve(t, newFake(t), func(c *Config) { c.MaxConnections = limit })
	busy := s.dial()
	request := s.header("POST", "/api/v1/jobs", "Content-Type: application/json\r\nContent-Length: 2\r\n")
	_, err := io.WriteString(busy, "GET /healthz HTTP/1.1\r\nHost: "+s.Address()+"\r\n\r\n"+request)
	require.NoError(t, err)
	answers := bufio.NewReader(busy)
	read := func(r *bufio.Reader) int {
		t.Helper()
		answer, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		readAll(t, answer.Body)
		return answer.StatusCode
	}
	require.Equal(t, http.StatusOK, read(answers)) // the first answer; the second request has no body yet

	for i := range 3 * limit {
		c := s.dial()
		if i%2 == 0 {
			continue // this connection sends nothing
		}
		_, err := io.WriteString(c, s.header("GET", "/readyz", ""))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, read(bufio.NewReader(c)), i)
	}
	_, err = io.WriteString(busy, "{}")
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, read(answers))
}

// TestProbesAmongUnheard opens more connections than are allowed, without sending a complete
// request. Probes must still be answered.
func TestProbesAmongUnheard(t *testing.T) {
	p, err := NewProbes("127.0.0.1:0", newFake(t), hclog.NewNullLogger())
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	for _, begin := range []string{"", "GET /healthz HTTP/1.1\r\nHost: x\r\n"} {
		for range 3 * maxProbes {
			c, err := net.Dial("tcp", p.Address())
			require.NoError(t, err)
			t.Cleanup(func() { c.Close() })
			_, err = io.WriteString(c, begin)
			require.NoError(t, err)
		}
		begun := time.Now()
		r, err := client(t).Get("http://" + p.Address() + "/healthz")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.StatusCode)
		readAll(t, r.Body)
		require.Less(t, time.Since(begun), probeTimeout/2, "a probe must not wait until other connections time out")
	}
}

// TestUnfinishedHeads opens many connections to the main port and sends incomplete headers.
// Other clients must still be able to connect.
func TestUnfinishedHeads(t *testing.T) {
	const limit = 32
	s := serve(t, newFake(t), func(c *Config) { c.MaxConnections, c.ReadTimeout = limit, 30*time.Second })
	for range 3 * limit {
		_, err := io.WriteString(s.dial(), "GET /healthz HTTP/1.1\r\nHost: x\r\n")
		require.NoError(t, err)
	}
	r, err := s.get(client(t), "/healthz")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode)
	readAll(t, r.Body)
}

// TestProbes sends requests without a token and with a host name that the server does not know.
// Only probes may be answered.
func TestProbes(t *testing.T) {
	f := newFake(t)
	p, err := NewProbes("127.0.0.1:0", f, hclog.NewNullLogger())
	require.NoError(t, err)
	ask := func(method, path string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, "http://"+p.Address()+path, nil)
		require.NoError(t, err)
		r.Host = "10.1.2.3:8082"
		answer, err := client(t).Do(r)
		require.NoError(t, err)
		require.True(t, answer.Close, "the connection must end after the answer")
		return answer.StatusCode, readAll(t, answer.Body)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		code, body := ask("GET", path)
		require.Equal(t, http.StatusOK, code)
		require.JSONEq(t, `{"status":"ok"}`, body)
		code, _ = ask("POST", path)
		require.Equal(t, http.StatusMethodNotAllowed, code)
	}
	f.unready = errors.New("its disk is full")
	code, body := ask("GET", "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, body, "its disk is full")
	code, _ = ask("GET", "/healthz")
	require.Equal(t, http.StatusOK, code)
	for _, path := range []string{"/", "/metrics", "/api/v1/overview"} {
		code, _ = ask("GET", path)
		require.Equal(t, http.StatusNotFound, code, path)
	}
	_, err = NewProbes(p.Address(), f, hclog.NewNullLogger())
	require.ErrorContains(t, err, "choose another address with --probes")
	require.NoError(t, p.Close())
}

// TestSlowSenders requires that the connection of a client that sends a request slowly or not
// at all is closed, and that other clients can connect.
func TestSlowSenders(t *testing.T) {
	s := serve(t, newFake(t), func(c *Config) { c.ReadTimeout = 90 * time.Millisecond; c.MaxConnections = 2 })
	silent, slow := s.dial(), s.dial()
	_, err := io.WriteString(slow, s.header("POST", "/api/v1/jobs", "Content-Type: application/json\r\nContent-Length: 10\r\n")+"{")
	require.NoError(t, err)
	another := func() bool {
		c := s.dial() // the connection waits until the number of connections is below the limit
		_, err := io.WriteString(c, s.header("GET", "/api/v1/jobs", "Connection: close\r\n"))
		if err != nil {
			return false
		}
		answer, err := io.ReadAll(c)
		return err == nil && strings.HasPrefix(string(answer), "HTTP/1.1 200 ")
	}
	for tries := 1; !another(); tries++ { // a busy server may read the request too late
		require.Less(t, tries, 50)
	}
	for _, c := range []net.Conn{silent, slow} {
		answer, err := io.ReadAll(c)
		require.NoError(t, err)
		require.NotContains(t, string(answer), "HTTP/1.1 200 ")
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	_, err := security.InitTLS(dir, []string{"localhost", "127.0.0.1"}, false)
	require.NoError(t, err)
	file := func(name string) string { return filepath.Join(dir, name) }
	s := serve(t, newFake(t), func(c *Config) {
		c.TLS = security.TLSFiles{CA: file("ca.pem"), Cert: file("jobmanager.pem"), Key: file("jobmanager-key.pem")}
	})
	require.True(t, strings.HasPrefix(s.URL(), "https://127.0.0.1:"), s.URL())

	with := func(files security.TLSFiles) *http.Client {
		config, err := files.Client()
		require.NoError(t, err)
		transport := &http.Transport{TLSClientConfig: config}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	r, err := s.get(with(security.TLSFiles{CA: file("ca.pem"), Cert: file("client.pem"), Key: file("client-key.pem")}), "/api/v1/overview")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode)
	require.EqualValues(t, tls.VersionTLS13, r.TLS.Version)
	readAll(t, r.Body)

	_, err = s.get(with(security.TLSFiles{CA: file("ca.pem")}), "/healthz")
	require.Error(t, err, "a client without a certificate must be refused")
	plain := s.dial()
	_, err = io.WriteString(plain, s.header("GET", "/api/v1/jobs", ""))
	require.NoError(t, err)
	answer, err := io.ReadAll(plain)
	require.NoError(t, err)
	require.Contains(t, string(answer), "400 Bad Request")
}

func TestURLNamesAHostThatIsServed(t *testing.T) {
	s := serve(t, newFake(t), func(c *Config) { c.Listen = "0.0.0.0:0"; c.Insecure = true })
	require.True(t, strings.HasPrefix(s.URL(), "http://localhost:"), s.URL())
	r, err := s.get(client(t), "/readyz")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode)
	readAll(t, r.Body)
}

// TestListenerBreaks requires that if the listener of a server fails, Close returns the error.
func TestListenerBreaks(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	token, err := security.NewToken()
	require.NoError(t, err)
	s, err := New(Config{Listener: l, Manager: newFake(t), Token: token})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	<-s.serving
	require.ErrorIs(t, s.Close(), net.ErrClosed)
	require.ErrorIs(t, s.Close(), net.ErrClosed)
}
