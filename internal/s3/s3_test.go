package s3

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
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/s3/s3test"
)

// TestPublishedSignatures requires the signatures of the examples in the Amazon S3 API Reference,
// "Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk".
func TestPublishedSignatures(t *testing.T) {
	config := &Config{Region: "us-east-1", AccessKey: "AKIAIOSFODNN7EXAMPLE", SecretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	at := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		method, path, body string
		query              map[string]string
		header             map[string]string
		want               string
	}{
		{method: "GET", path: "/test.txt", header: map[string]string{"Range": "bytes=0-9"},
			want: "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{method: "PUT", path: "/test$file.text", body: "Welcome to Amazon S3.",
			header: map[string]string{"Date": "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY"},
			want:   "Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		{method: "GET", path: "/", query: map[string]string{"lifecycle": ""},
			want: "Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{method: "GET", path: "/", query: map[string]string{"max-keys": "2", "prefix": "J"},
			want: "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	} {
		u := &url.URL{Scheme: "https", Host: "examplebucket.s3.amazonaws.com", Path: c.path, RawPath: escape(c.path, "/"), RawQuery: query(c.query)}
		r := &http.Request{Method: c.method, URL: u, Header: make(http.Header)}
		for name, value := range c.header {
			r.Header.Set(name, value)
		}
		config.sign(r, hexSum([]byte(c.body)), at)
		require.True(t, strings.HasSuffix(r.Header.Get("Authorization"), c.want), "%s %s: %s", c.method, c.path, r.Header.Get("Authorization"))
	}
}

// open returns a client of a server, with short waits.
func open(t testing.TB, getenv func(string) string, change func(*Config)) *Bucket {
	t.Helper()
	config, err := FromEnv(getenv)
	require.NoError(t, err)
	config.Wait = time.Millisecond
	if change != nil {
		change(&config)
	}
	b, err := Open(config, "bucket")
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return b
}

// TestObjects requires that objects are stored, read, listed in pages and deleted, with keys of all
// kinds of characters, over the network and at Amazon's addresses.
func TestObjects(t *testing.T) {
	server, deeper := s3test.New(), s3test.New()
	server.Token = "token+of/a session="
	deeper.BasePath = "/some/path"
	keys := []string{"p/a", "p/b c", "p/d+e%20", "p/é~*'()!", "p/ü?x=1&y#z", "p/\x01", "p/\"<&>", "q", "p/deeper/x", "pp"}
	for name, b := range map[string]*Bucket{
		"network": open(t, server.Start(t), nil),
		"amazon":  open(t, server.Env(""), func(c *Config) { c.Transport = server }),
		"path":    open(t, deeper.Env("http://s3.test/some/path/"), func(c *Config) { c.Transport = deeper }),
	} {
		server := server
		if name == "path" {
			server = deeper
		}
		for i, key := range keys {
			data := bytes.Repeat([]byte{byte(i)}, i*1000)
			etag, err := b.Put(t.Context(), key, data, Condition{})
			require.NoError(t, err, "%s: %q", name, key)
			o, err := b.Get(t.Context(), key, int64(len(data)))
			require.NoError(t, err, "%s: %q", name, key)
			require.True(t, bytes.Equal(data, o.Data))
			require.Equal(t, etag, o.ETag)
		}
		require.Len(t, server.Objects(), len(keys), name)
		got, err := b.List(t.Context(), "p/")
		require.NoError(t, err)
		slices.Sort(got)
		want := slices.Clone(keys[:7])
		slices.Sort(want)
		require.Equal(t, want, got, name)
		for _, key := range keys {
			require.NoError(t, b.Delete(t.Context(), key))
			require.NoError(t, b.Delete(t.Context(), key))
			_, err := b.Get(t.Context(), key, 10)
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
		require.Empty(t, server.Objects(), name)
	}
}

// TestConditions requires that a Put with a condition changes nothing if the condition does not hold.
func TestConditions(t *testing.T) {
	server := s3test.New()
	b := open(t, server.Start(t), nil)
	put := func(text string, when Condition) (string, error) {
		return b.Put(t.Context(), "k", []byte(text), when)
	}
	_, err := put("0", Condition{ETag: `"1"`})
	require.ErrorIs(t, err, fs.ErrNotExist)
	first, err := put("1", Condition{Absent: true})
	require.NoError(t, err)
	_, err = put("2", Condition{Absent: true})
	require.True(t, ConditionFailed(err), "%v", err)
	second, err := put("3", Condition{ETag: first})
	require.NoError(t, err)
	_, err = put("4", Condition{ETag: first})
	require.True(t, ConditionFailed(err), "%v", err)
	require.NotEqual(t, first, second)
	require.Equal(t, "3", string(server.Objects()["k"]))
}

// TestSizes requires that objects beyond the expected size are errors at once.
func TestSizes(t *testing.T) {
	server := s3test.New()
	b := open(t, server.Start(t), nil)
	server.SetObject("k", make([]byte, 1000))
	_, err := b.Get(t.Context(), "k", 999)
	require.ErrorContains(t, err, "it has 1000 bytes, and at most 999 are expected")
	require.Equal(t, []string{"GET k"}, server.Requests())
}

// TestClocks requires that a client works although its clock differs from the store's by hours,
// and that ages are measured by the store's clock.
func TestClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, ahead := range []time.Duration{-30 * time.Hour, 0, 5 * time.Hour} {
			server := s3test.New()
			server.SetClock(ahead)
			b := open(t, server.Env("http://s3.test"), func(c *Config) { c.Transport = server })
			_, err := b.Put(t.Context(), "k", nil, Condition{})
			require.NoError(t, err)
			time.Sleep(90 * time.Second)
			o, err := b.Get(t.Context(), "k", 0)
			require.NoError(t, err)
			require.Equal(t, 90*time.Second, o.Age)
		}
	})
}

// TestFaults requires that faults that pass are overcome, whatever they are: an operation succeeds,
// or fails with an error after several tries, and no wrong byte is read.
func TestFaults(t *testing.T) {
	server := s3test.New()
	b := open(t, server.Start(t), func(c *Config) { c.Timeout = 100 * time.Millisecond })
	failed, done := 0, 0
	faults := make(map[s3test.Kind]int)
	for seed := range uint64(6) {
		server.Fail(seed, 4, 200*time.Millisecond)
		for i := range 12 {
			key, data := fmt.Sprint("k", i), bytes.Repeat([]byte{byte(i), byte(seed)}, 1+i*20_000)
			_, err := b.Put(t.Context(), key, data, Condition{})
			clear(data) // the client must not read it any more
			if err != nil {
				failed++
				continue
			}
			done++
			o, err := b.Get(t.Context(), key, int64(len(data)))
			if err != nil {
				failed++
				continue
			}
			require.True(t, bytes.Equal(bytes.Repeat([]byte{byte(i), byte(seed)}, 1+i*20_000), o.Data), "seed %d", seed)
			keys, err := b.List(t.Context(), "k")
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
	list := func(change func(*Config)) error {
		config, err := FromEnv(getenv)
		require.NoError(t, err)
		config.Wait = time.Millisecond
		change(&config)
		b, err := Open(config, "bucket")
		require.NoError(t, err)
		defer b.Close()
		_, err = b.List(t.Context(), "")
		return err
	}
	require.NoError(t, list(func(*Config) {}))
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
	for want, change := range map[string]func(*Config){
		"AWS_ACCESS_KEY_ID":                                func(c *Config) { c.AccessKey = "other" },
		"AWS_SECRET_ACCESS_KEY is not the secret":          func(c *Config) { c.SecretKey = "other" },
		"AWS_SESSION_TOKEN has expired or does not belong": func(c *Config) { c.SessionToken = "other" },
		"the bucket is in the region eu-test-1":            func(c *Config) { c.Region = "us-east-1" },
		"404 Not Found: is this the URL of an S3 store?":   func(c *Config) { c.Endpoint = other.URL },
		"the answer is no list of objects":                 func(c *Config) { c.Endpoint = page.URL },
		"can this machine reach it?":                       func(c *Config) { c.Endpoint = closed.URL },
		"set SSL_CERT_FILE to that authority's file":       func(c *Config) { c.Endpoint = secure.URL },
	} {
		config := &Config{Endpoint: endpoint}
		change(config)
		err := list(change)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "bucket bucket at "+config.Endpoint)
	}
	server.Bucket = "elsewhere"
	require.ErrorContains(t, list(func(*Config) {}), "NoSuchBucket: The specified bucket does not exist: create the bucket, or correct its name or the endpoint")

	cancelled := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cancelled)
	_, err := open(t, getenv, nil).Get(ctx, "k", 1)
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
		config, err := FromEnv(func(name string) string { return values[name] })
		if err == nil {
			_, err = Open(config, "bucket")
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
	config, err := FromEnv(s3test.New().Env(""))
	require.NoError(t, err)
	for bucket, want := range map[string]string{
		"b":   "bucket b at https://b.s3.eu-test-1.amazonaws.com",
		"b.c": "bucket b.c at https://s3.eu-test-1.amazonaws.com",
	} {
		b, err := Open(config, bucket)
		require.NoError(t, err)
		require.Equal(t, want, b.String())
	}
	_, err = Open(config, "a b")
	require.ErrorContains(t, err, `"a b" is no name of a bucket`)
}
