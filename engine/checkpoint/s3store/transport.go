package s3store

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/minio/minio-go/v7/pkg/signer"
)

// transport sends the requests of the library, for which it does what the library does not. It
// sends to endpoints with paths and to regions that the library does not know. It signs for the
// time of the store if the clocks differ by much. It verifies that an answer is a list of objects
// before the library reads it as one.
type transport struct {
	settings
	host string // to which all requests go
	path string // of the endpoint
	next http.RoundTripper
	// ahead is by how much the store's clock is ahead of this machine's. It is 0 until the store has
	// refused a request.
	ahead atomic.Int64
}

const (
	mostPage  = 16 << 20 // bytes of a page of a list, which has 1000 keys of 1024 bytes
	mostError = 64 << 10 // bytes that are read of an answer that is neither a list nor an object
)

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	ahead := time.Duration(t.ahead.Load())
	if t.locate(r) || ahead != 0 {
		t.sign(r, time.Now().Add(ahead))
	}
	resp, err := t.next.RoundTrip(r)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the connection has ended before the answer") // the library would repeat the URL
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusForbidden { // the clocks may differ by more than the 15 minutes that stores accept
		if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			t.ahead.Store(int64(time.Until(at)))
		}
	}
	if r.Method != http.MethodGet || resp.StatusCode != http.StatusOK { // the library reads it up to its end
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, mostError), resp.Body}
		return resp, nil
	}
	if r.URL.Query().Has("list-type") {
		return readList(resp)
	}
	return resp, nil
}

// locate corrects the place of a request, and reports whether it was another.
func (t *transport) locate(r *http.Request) bool {
	u := r.URL
	if u.Host == t.host && t.path == "" {
		return false
	}
	u.Host, u.Path, u.RawPath = t.host, t.path+u.Path, s3utils.EncodePath(t.path)+u.EscapedPath()
	r.Host = t.host
	return true
}

// sign signs a request anew that the library has signed for another time or place.
func (t *transport) sign(r *http.Request, at time.Time) {
	const algorithm, layout = "AWS4-HMAC-SHA256", "20060102T150405Z"
	at = at.UTC()
	r.Header.Set("X-Amz-Date", at.Format(layout))
	_, names, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	lines := []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery}
	for name := range strings.SplitSeq(names, ";") {
		value := r.Header.Get(name)
		if name == "host" {
			value = t.host
		}
		lines = append(lines, name+":"+value)
	}
	lines = append(lines, "", names, r.Header.Get("X-Amz-Content-Sha256"))
	credential := signer.GetCredential(t.accessKey, t.region, at, signer.ServiceTypeS3)
	scope := strings.TrimPrefix(credential, t.accessKey+"/")
	text := strings.Join([]string{algorithm, at.Format(layout), scope, hexSum([]byte(strings.Join(lines, "\n")))}, "\n")
	r.Header.Set("Authorization", fmt.Sprintf("%s Credential=%s, SignedHeaders=%s, Signature=%s",
		algorithm, credential, names, signer.PostPresignSignatureV4(text, at, t.secretKey, t.region)))
}

// readList returns an answer that should be a page of a list, once it has been read. The library
// would take any document for an empty list, and would read without a limit.
func readList(resp *http.Response) (*http.Response, error) {
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, mostPage))
	if err != nil {
		return nil, err
	}
	var page struct {
		XMLName xml.Name `xml:"ListBucketResult"`
	}
	if xml.Unmarshal(data, &page) != nil {
		return nil, &answerError{errors.New("the answer is no list of objects; is this the URL of an S3 store?")}
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}
