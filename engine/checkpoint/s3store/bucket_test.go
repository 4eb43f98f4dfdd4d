package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/internal/s3test"
)

func TestMain(m *testing.M) {
	minio.DefaultRetryUnit = time.Millisecond // the library waits after errors, although it does not try again
	m.Run()
}

// newClient returns a client of a server, with short waits.
func newClient(t testing.TB, getenv func(string) string, change func(*settings)) *bucket {
	t.Helper()
	config, err := fromEnv(getenv)
	require.NoError(t, err)
	config.wait = time.Millisecond
	if change != nil {
		change(&config)
	}
	b, err := openBucket(config, "bucket")
	require.NoError(t, err)
	t.Cleanup(b.close)
	return b
}

// TestObjects requires that objects are stored, read, listed in pages and deleted, with keys of all
// kinds of characters, over the network and at Amazon's addresses.
func TestObjects(t *testing.T) {
	server, deeper := s3test.New(), s3test.New()
	server.Token = "token+of/a session="
	deeper.BasePath = "/some/path"
	keys := []string{"p/a", "p/b c", "p/d+e%20", "p/é~*'()!", "p/ü?x=1&y#z", "p/\x01", "p/\"<&>", "q", "p/deeper/x", "pp"}
	for name, b := range map[string]*bucket{
		"network": newClient(t, server.Start(t), nil),
		"amazon":  newClient(t, server.Env(""), func(c *settings) { c.transport = server }),
		"path":    newClient(t, deeper.Env("http://s3.test/some/path/"), func(c *settings) { c.transport = deeper }),
	} {
		server := server
		if name == "path" {
			server = deeper
		}
		for i, key := range keys {
			data := bytes.Repeat([]byte{byte(i)}, i*1000)
			etag, err := b.put(t.Context(), key, data, condition{})
			require.NoError(t, err, "%s: %q", name, key)
			o, err := b.get(t.Context(), key, int64(len(data)))
			require.NoError(t, err, "%s: %q", name, key)
			require.True(t, bytes.Equal(data, o.data))
			require.Equal(t, etag, o.etag)
		}
		require.Len(t, server.Objects(), len(keys), name)
		got, err := b.list(t.Context(), "p/")
		require.NoError(t, err)
		slices.Sort(got)
		want := slices.Clone(keys[:7])
		slices.Sort(want)
		require.Equal(t, want, got, name)
		for _, key := range keys {
			require.NoError(t, b.delete(t.Context(), key))
			require.NoError(t, b.delete(t.Context(), key))
			_, err := b.get(t.Context(), key, 10)
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
		require.Empty(t, server.Objects(), name)
	}
}

// TestConditions requires that a Put with a condition changes nothing if the condition does not hold.
func TestConditions(t *testing.T) {
	server := s3test.New()
	b := newClient(t, server.Start(t), nil)
	put := func(text string, when condition) (string, error) {
		return b.put(t.Context(), "k", []byte(text), when)
	}
	_, err := put("0", condition{etag: "1"})
	require.ErrorIs(t, err, fs.ErrNotExist)
	first, err := put("1", condition{absent: true})
	require.NoError(t, err)
	_, err = put("2", condition{absent: true})
	require.True(t, conditionFailed(err), "%v", err)
	second, err := put("3", condition{etag: first})
	require.NoError(t, err)
	_, err = put("4", condition{etag: first})
	require.True(t, conditionFailed(err), "%v", err)
	require.NotEqual(t, first, second)
	require.Equal(t, "3", string(server.Objects()["k"]))
}

// roundTripper is a network.
type roundTripper func(r *http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAddresses requires the addresses of the Amazon S3 User Guide, "Virtual hosting of general
// purpose buckets" and "Path-style requests", also in regions that the library does not know, and
// a bucket in the path with any other endpoint.
func TestAddresses(t *testing.T) {
	for _, c := range []struct{ region, endpoint, bucket, want string }{
		{"eu-west-1", "", "bucket", "https://bucket.s3.eu-west-1.amazonaws.com/a%20b"},
		{"us-east-1", "", "bucket", "https://bucket.s3.us-east-1.amazonaws.com/a%20b"},
		{"xy-new-7", "", "bucket", "https://bucket.s3.xy-new-7.amazonaws.com/a%20b"},
		{"cn-north-1", "", "bucket", "https://bucket.s3.cn-north-1.amazonaws.com.cn/a%20b"},
		{"cn-new-7", "", "bucket", "https://bucket.s3.cn-new-7.amazonaws.com.cn/a%20b"},
		{"eu-west-1", "", "a.bucket", "https://s3.eu-west-1.amazonaws.com/a.bucket/a%20b"},
		{"eu-west-1", "https://s3.dualstack.eu-west-1.amazonaws.com/", "bucket", "https://s3.dualstack.eu-west-1.amazonaws.com/bucket/a%20b"},
		{"us-east-1", "http://store:9000", "bucket", "http://store:9000/bucket/a%20b"},
		{"us-east-1", "https://store:443", "bucket", "https://store:443/bucket/a%20b"},
		{"us-east-1", "http://[::1]:9000", "bucket", "http://[::1]:9000/bucket/a%20b"},
		{"us-east-1", "http://a_store/the path/é/", "bucket", "http://a_store/the%20path/%C3%A9/bucket/a%20b"},
	} {
		server := s3test.New()
		server.Region, server.Bucket = c.region, c.bucket
		config, err := fromEnv(server.Env(c.endpoint))
		require.NoError(t, err)
		if _, path, ok := strings.Cut(strings.TrimPrefix(c.endpoint, "http://"), "/"); ok && strings.HasPrefix(c.endpoint, "http://") {
			server.BasePath = strings.TrimRight("/"+path, "/")
		}
		var sent []string
		config.transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			require.Equal(t, r.URL.Host, r.Host)
			sent = append(sent, r.URL.String())
			return server.RoundTrip(r)
		})
		b, err := openBucket(config, c.bucket)
		require.NoError(t, err)
		_, err = b.put(t.Context(), "a b", []byte("x"), condition{})
		require.NoError(t, err, c.want)
		require.Equal(t, []string{c.want}, sent)
	}
}

// TestLongLists requires that lists have all keys, however many pages there are, and that a list
// whose context ends between two pages is an error, rather than shorter.
func TestLongLists(t *testing.T) {
	server := s3test.New()
	server.PageSize = 1000
	ctx, cancel := context.WithCancelCause(t.Context())
	pages := 0
	b := newClient(t, server.Env("http://s3.test"), func(c *settings) {
		c.transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if pages++; pages == 5 {
				defer cancel(errDown)
			}
			return server.RoundTrip(r)
		})
	})
	var want []string
	for i := range 2500 {
		want = append(want, fmt.Sprintf("p/%04d", i))
		server.SetObject(want[i], []byte("x"))
	}
	keys, err := b.list(ctx, "p/")
	require.NoError(t, err)
	require.Equal(t, want, keys)
	require.Equal(t, 3, pages)
	_, err = b.list(ctx, "p/")
	require.ErrorIs(t, err, errDown)
	require.Equal(t, 5, pages)
}

// TestEndlessAnswers requires that answers without an end are not read for ever.
func TestEndlessAnswers(t *testing.T) {
	read, status := 0, http.StatusOK
	b := newClient(t, s3test.New().Env("http://s3.test"), func(c *settings) {
		c.transport = roundTripper(func(*http.Request) (*http.Response, error) {
			h := http.Header{"Last-Modified": {"Fri, 24 May 2013 00:00:00 GMT"}}
			return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(endless{&read})}, nil
		})
	})
	_, err := b.list(t.Context(), "")
	require.ErrorContains(t, err, "the answer is no list of objects")
	require.LessOrEqual(t, read, tries*mostPage)
	read = 0
	_, err = b.get(t.Context(), "k", 1000)
	require.ErrorContains(t, err, "it has more than the 1000 bytes that are expected")
	require.LessOrEqual(t, read, mostError)
	for _, status = range []int{http.StatusOK, http.StatusNoContent, http.StatusNotFound, http.StatusBadGateway} {
		read = 0
		_, err = b.put(t.Context(), "k", nil, condition{})
		require.Error(t, err)
		b.delete(t.Context(), "k") //nolint:errcheck // 204 is success
		require.LessOrEqual(t, read, 2*tries*mostError)
	}
}

// endless is an answer that never ends. It counts the bytes that are read.
type endless struct{ read *int }

// Read implements io.Reader.
func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "<a/>"[i%4]
	}
	*e.read += len(p)
	return len(p), nil
}

// TestGoroutines requires that nothing runs any more after a client is closed.
func TestGoroutines(t *testing.T) {
	server := s3test.New()
	network := httptest.NewServer(server)
	defer network.Close()
	before := goleak.IgnoreCurrent()
	config, err := fromEnv(server.Env(network.URL))
	require.NoError(t, err)
	b, err := openBucket(config, "bucket")
	require.NoError(t, err)
	for range 3 {
		_, err = b.put(t.Context(), "k", []byte("x"), condition{})
		require.NoError(t, err)
		_, err = b.list(t.Context(), "")
		require.NoError(t, err)
		_, err = b.get(t.Context(), "k", 1)
		require.NoError(t, err)
	}
	require.NoError(t, b.delete(t.Context(), "k"))
	b.close()
	goleak.VerifyNone(t, before)
}

// TestDataIsNotKept requires that a network that reads the body of a request late, after its end,
// gets nothing of the data, which belongs to the caller again.
func TestDataIsNotKept(t *testing.T) {
	var bodies []io.Reader
	b := newClient(t, s3test.New().Env("http://s3.test"), func(c *settings) {
		c.transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			first := make([]byte, 1)
			_, err := io.ReadFull(r.Body, first)
			require.NoError(t, err)
			bodies = append(bodies, r.Body)
			return nil, errDown
		})
	})
	_, err := b.put(t.Context(), "k", make([]byte, 100_000), condition{})
	require.ErrorIs(t, err, errDown)
	require.Len(t, bodies, tries)
	for _, body := range bodies {
		rest, err := io.ReadAll(body)
		require.ErrorContains(t, err, "the request has ended")
		require.Empty(t, rest)
	}
}

// TestSizes requires that objects beyond the expected size are errors at once.
func TestSizes(t *testing.T) {
	server := s3test.New()
	b := newClient(t, server.Start(t), nil)
	server.SetObject("k", make([]byte, 1000))
	_, err := b.get(t.Context(), "k", 999)
	require.ErrorContains(t, err, "it has 1000 bytes, and at most 999 are expected")
	require.Equal(t, []string{"GET k"}, server.Requests())
}

// TestClocks requires that a client works although its clock differs from the store's by hours,
// also if one of the clocks is corrected, and that ages are measured by the store's clock.
func TestClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, ahead := range []time.Duration{-30 * time.Hour, 0, 5 * time.Hour} {
			server := s3test.New()
			server.SetClock(ahead)
			b := newClient(t, server.Env("http://s3.test"), func(c *settings) { c.transport = server })
			_, err := b.put(t.Context(), "k", nil, condition{})
			require.NoError(t, err)
			time.Sleep(90 * time.Second)
			o, err := b.get(t.Context(), "k", 0)
			require.NoError(t, err)
			require.Equal(t, 90*time.Second, o.age)
			for _, corrected := range []time.Duration{0, 14 * time.Minute, -time.Hour} {
				server.SetClock(corrected)
				_, err := b.list(t.Context(), "")
				require.NoError(t, err)
			}
		}
	})
}

// TestPassingFaults requires that faults that pass are overcome, whatever they are: an operation succeeds,
// or fails with an error after several tries, and no wrong byte is read.
func TestPassingFaults(t *testing.T) {
	server := s3test.New()
	b := newClient(t, server.Start(t), func(c *settings) { c.timeout = 100 * time.Millisecond })
	failed, done := 0, 0
	faults := make(map[s3test.Kind]int)
	for seed := range uint64(6) {
		server.Fail(seed, 4, 200*time.Millisecond)
		for i := range 12 {
			key, data := fmt.Sprint("k", i), bytes.Repeat([]byte{byte(i), byte(seed)}, 1+i*20_000)
			_, err := b.put(t.Context(), key, data, condition{})
			clear(data) // the client must not read it any more
			if err != nil {
				failed++
				continue
			}
			done++
			o, err := b.get(t.Context(), key, int64(len(data)))
			if err != nil {
				failed++
				continue
			}
			require.True(t, bytes.Equal(bytes.Repeat([]byte{byte(i), byte(seed)}, 1+i*20_000), o.data), "seed %d", seed)
			keys, err := b.list(t.Context(), "k")
			if err != nil {
				failed++
				continue
			}
			require.Contains(t, keys, key)
		}
		for kind, n := range server.Faults() {
			faults[kind] += n
		}
	}
	require.Greater(t, done, 60)
	require.Less(t, failed, 7)
	for kind := s3test.Refuse; kind <= s3test.Truncate; kind++ {
		require.Positive(t, faults[kind], "faults of kind %d", kind)
	}
}

// TestErrors requires that errors name the bucket, the endpoint and what to do.
func TestErrors(t *testing.T) {
	server := s3test.New()
	getenv := server.Start(t)
	endpoint := getenv("AWS_ENDPOINT_URL_S3")
	list := func(change func(*settings)) error {
		config, err := fromEnv(getenv)
		require.NoError(t, err)
		config.wait = time.Millisecond
		change(&config)
		b, err := openBucket(config, "bucket")
		require.NoError(t, err)
		defer b.close()
		_, err = b.list(t.Context(), "")
		return err
	}
	require.NoError(t, list(func(*settings) {}))
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html></html>") }))
	defer page.Close()
	secure := httptest.NewUnstartedServer(server)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	closed := httptest.NewServer(server)
	closed.Close()
	for want, change := range map[string]func(*settings){
		"AWS_ACCESS_KEY_ID":                                func(c *settings) { c.accessKey = "other" },
		"AWS_SECRET_ACCESS_KEY is not the secret":          func(c *settings) { c.secretKey = "other" },
		"AWS_SESSION_TOKEN has expired or does not belong": func(c *settings) { c.sessionToken = "other" },
		"the bucket is in the region eu-test-1":            func(c *settings) { c.region = "us-east-1" },
		"404 Not Found: is this the URL of an S3 store?":   func(c *settings) { c.endpoint = other.URL },
		"the answer is no list of objects":                 func(c *settings) { c.endpoint = page.URL },
		"can this machine reach it?":                       func(c *settings) { c.endpoint = closed.URL },
		"set SSL_CERT_FILE to that authority's file":       func(c *settings) { c.endpoint = secure.URL },
	} {
		config := &settings{endpoint: endpoint}
		change(config)
		err := list(change)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "bucket bucket at "+config.endpoint)
	}
	config, err := fromEnv(getenv)
	require.NoError(t, err)
	config.wait = time.Millisecond
	config.endpoint = other.URL
	b, err := openBucket(config, "bucket")
	require.NoError(t, err)
	defer b.close()
	_, err = b.get(t.Context(), "k", 1)
	require.NotErrorIs(t, err, fs.ErrNotExist, "what is no store does not know what there is")
	config.endpoint = page.URL
	b, err = openBucket(config, "bucket")
	require.NoError(t, err)
	defer b.close()
	_, err = b.put(t.Context(), "k", nil, condition{})
	require.ErrorContains(t, err, "the answer has no ETag; is this the URL of an S3 store?")
	_, err = b.get(t.Context(), "k", 100)
	require.ErrorContains(t, err, "the answer is no object of an S3 store: Last-Modified")
	server.Bucket = "elsewhere"
	require.ErrorContains(t, list(func(*settings) {}), "NoSuchBucket: The specified bucket does not exist: create the bucket, or correct its name or the endpoint")

	cancelled := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cancelled)
	_, err = newClient(t, getenv, nil).get(ctx, "k", 1)
	require.ErrorIs(t, err, cancelled)
}

// TestEnvironment requires that a missing or impossible setting is an error that names it.
func TestEnvironment(t *testing.T) {
	env := func(changes ...string) error {
		values := map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "r"}
		for _, c := range changes {
			name, value, _ := strings.Cut(c, "=")
			values[name] = value
		}
		config, err := fromEnv(func(name string) string { return values[name] })
		if err == nil {
			_, err = openBucket(config, "bucket")
		}
		return err
	}
	require.NoError(t, env())
	require.NoError(t, env("AWS_REGION=", "AWS_DEFAULT_REGION=x"))
	require.NoError(t, env("AWS_REGION=", "AWS_ENDPOINT_URL=http://x"))
	require.ErrorContains(t, env("AWS_ACCESS_KEY_ID="), "the environment variable AWS_ACCESS_KEY_ID is not set")
	require.ErrorContains(t, env("AWS_SECRET_ACCESS_KEY="), "the environment variable AWS_SECRET_ACCESS_KEY is not set")
	require.ErrorContains(t, env("AWS_REGION="), "the environment variable AWS_REGION is not set")
	for _, endpoint := range []string{"store:9000", "ftp://store", "http://", "http://u:p@store", "http://store?x"} {
		require.ErrorContains(t, env("AWS_ENDPOINT_URL_S3="+endpoint), "AWS_ENDPOINT_URL")
	}
	config, err := fromEnv(s3test.New().Env(""))
	require.NoError(t, err)
	b, err := openBucket(config, "abc")
	require.NoError(t, err)
	require.Equal(t, "bucket abc at https://s3.eu-test-1.amazonaws.com", b.String())
	_, err = openBucket(config, "a b")
	require.ErrorContains(t, err, `"a b" is no name of a bucket`)
}
