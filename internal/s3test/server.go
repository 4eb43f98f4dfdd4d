// Package s3test is a store with the interface of Amazon S3 in memory, for tests. It verifies
// signatures, gives lists in small pages, obeys conditions of puts, and can fail by seed.
//
//	server := s3test.New()
//	store, err := s3store.Open(ctx, "s3://bucket/prefix", s3store.Config{Getenv: server.Start(t)})
//
// Without the network, also in bubbles of synctest:
//
//	s3store.Config{Getenv: server.Env("http://s3.test"), Transport: server}
package s3test

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a store with one bucket.
type Server struct {
	Bucket    string
	Region    string
	AccessKey string
	SecretKey string
	Token     string // that requests must have; empty means none
	PageSize  int    // keys in a page of a list
	BasePath  string // of the interface, such as "/storage"; empty means none

	// Unconditional makes the server ignore conditions.
	Unconditional bool

	mu       sync.Mutex
	objects  map[string]object
	put      int // number of puts
	requests []string
	ahead    time.Duration
	faults   *faults
}

type object struct {
	data []byte
	etag string
	meta http.Header
	at   time.Time
}

// New returns a Server with an empty bucket.
func New() *Server {
	return &Server{
		Bucket: "bucket", Region: "eu-test-1", AccessKey: "AKIDTEST", SecretKey: "a secret/of+tests", PageSize: 3,
		objects: make(map[string]object),
	}
}

// Start serves on a port of this machine until the test ends. It returns the environment of a
// client.
func (s *Server) Start(t testing.TB) (getenv func(name string) string) {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s.Env(server.URL)
}

// Env returns the environment of a client of an endpoint. An empty endpoint means Amazon's.
func (s *Server) Env(endpoint string) (getenv func(name string) string) {
	env := map[string]string{
		"AWS_ENDPOINT_URL_S3": endpoint, "AWS_REGION": s.Region, "AWS_ACCESS_KEY_ID": s.AccessKey,
		"AWS_SECRET_ACCESS_KEY": s.SecretKey, "AWS_SESSION_TOKEN": s.Token,
	}
	return func(name string) string { return env[name] }
}

// RoundTrip implements http.RoundTripper: it answers a request without the network. Faults that
// cut connections are errors then.
func (s *Server) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler { //nolint:errorlint // the value itself is thrown
				panic(p)
			}
			resp, err = nil, io.ErrUnexpectedEOF
		}
	}()
	served := r.Clone(r.Context())
	served.RequestURI = r.URL.RequestURI()
	if served.Body == nil {
		served.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, served)
	return w.Result(), nil
}

// SetClock sets by how much the server's clock is ahead of this machine's.
func (s *Server) SetClock(ahead time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead = ahead
}

// Objects returns the data of all objects by their keys.
func (s *Server) Objects() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	objects := make(map[string][]byte)
	for key, o := range s.objects {
		objects[key] = bytes.Clone(o.data)
	}
	return objects
}

// SetObject stores an object, without a request. If data is nil, it removes the object.
func (s *Server) SetObject(key string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if data == nil {
		delete(s.objects, key)
		return
	}
	s.store(key, bytes.Clone(data), nil)
}

// Requests returns the methods and keys of the requests so far, such as "PUT a/b".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) now() time.Time { return time.Now().Add(s.ahead) }

// store stores an object. mu is held. As in stores that encrypt, the ETag is no hash of the data.
func (s *Server) store(key string, data []byte, meta http.Header) object {
	s.put++
	o := object{data: data, etag: fmt.Sprintf(`"%d"`, s.put), meta: meta, at: s.now()}
	s.objects[key] = o
	return o
}

// failure is an error of the interface.
type failure struct {
	status  int
	code    string
	message string
}

func (f *failure) Error() string { return f.code }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := s.nextFault()
	fault.before(w, r)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	now := s.now()
	s.mu.Unlock()
	w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
	var answer []byte
	if fault.kind == Refuse {
		err = fault.refusal()
	} else if err = s.verify(r, body, now); err == nil {
		answer, err = s.serve(w.Header(), r, body)
	}
	var failed *failure
	status := http.StatusOK
	if errors.As(err, &failed) {
		status = failed.status
		answer = fmt.Appendf(nil, "<?xml version=\"1.0\"?>\n<Error><Code>%s</Code><Message>%s</Message></Error>", failed.code, failed.message)
	} else if r.Method == http.MethodDelete {
		status = http.StatusNoContent
	}
	fault.after(w, status, answer)
}

// serve carries out a request whose signature is right.
func (s *Server) serve(h http.Header, r *http.Request, body []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, s.BasePath+"/")
	key, found := path, strings.HasPrefix(r.Host, s.Bucket+".")
	if !found {
		var bucket string
		bucket, key, _ = strings.Cut(path, "/")
		found = bucket == s.Bucket
	}
	if !found {
		return nil, &failure{404, "NoSuchBucket", "The specified bucket does not exist"}
	}
	s.requests = append(s.requests, r.Method+" "+key)
	o, exists := s.objects[key]
	switch {
	case r.Method == http.MethodGet && key == "":
		return s.list(r.URL.Query())
	case r.Method == http.MethodGet && exists:
		maps.Copy(h, o.meta)
		h.Set("Etag", o.etag)
		h.Set("Last-Modified", o.at.UTC().Format(http.TimeFormat))
		return o.data, nil
	case r.Method == http.MethodGet:
		return nil, &failure{404, "NoSuchKey", "The specified key does not exist."}
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		return nil, nil
	case r.Method == http.MethodPut:
		return nil, s.putObject(h, r, key, body)
	}
	return nil, &failure{405, "MethodNotAllowed", r.Method}
}

func (s *Server) putObject(h http.Header, r *http.Request, key string, body []byte) error {
	sum := md5.Sum(body)
	if want := r.Header.Get("Content-Md5"); want != base64.StdEncoding.EncodeToString(sum[:]) {
		return &failure{400, "BadDigest", "The Content-MD5 you specified did not match what we received."}
	}
	o, exists := s.objects[key]
	absent, match := r.Header.Get("If-None-Match"), r.Header.Get("If-Match")
	switch {
	case s.Unconditional:
	case absent != "" && absent != "*" || absent != "" && match != "":
		return &failure{501, "NotImplemented", "A header you provided implies functionality that is not implemented"}
	case match != "" && !exists:
		return &failure{404, "NoSuchKey", "The specified key does not exist."}
	case absent != "" && exists, match != "" && match != o.etag:
		return &failure{412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold"}
	}
	meta := make(http.Header)
	for name, values := range r.Header {
		if strings.HasPrefix(name, "X-Amz-Meta-") {
			meta[name] = values
		}
	}
	h.Set("Etag", s.store(key, body, meta).etag)
	return nil
}

// list returns a page of a list. The token of a page is its first key.
func (s *Server) list(q url.Values) ([]byte, error) {
	if q.Get("list-type") != "2" || q.Get("encoding-type") != "url" || q.Get("delimiter") != "/" {
		return nil, &failure{400, "InvalidArgument", "only lists of version 2"}
	}
	type key struct {
		Key  string
		Size int
	}
	var page struct {
		XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
		EncodingType          string
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []key
	}
	page.EncodingType = "url"
	from, err := hex.DecodeString(q.Get("continuation-token"))
	if err != nil {
		return nil, &failure{400, "InvalidArgument", "The continuation token provided is incorrect"}
	}
	for _, k := range slices.Sorted(maps.Keys(s.objects)) {
		rest, ok := strings.CutPrefix(k, q.Get("prefix"))
		if !ok || strings.Contains(rest, "/") || k < string(from) || k <= q.Get("start-after") {
			continue
		}
		if len(page.Contents) == s.PageSize {
			page.IsTruncated, page.NextContinuationToken = true, hex.EncodeToString([]byte(k))
			break
		}
		page.Contents = append(page.Contents, key{url.QueryEscape(k), len(s.objects[k].data)})
	}
	return xml.Marshal(&page)
}

// after writes the answer, or what the fault leaves of it.
func (f *fault) after(w http.ResponseWriter, status int, answer []byte) {
	length := len(answer)
	switch f.kind {
	case Lose:
		panic(http.ErrAbortHandler)
	case Truncate, CutAnswer:
		answer = answer[:length/2]
		if f.kind == Truncate {
			length = len(answer)
		}
	}
	if status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(length))
	}
	w.WriteHeader(status)
	w.Write(answer) //nolint:errcheck // the client may have gone
	if f.kind == CutAnswer {
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
		panic(http.ErrAbortHandler)
	}
}
