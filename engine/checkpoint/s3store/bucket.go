package s3store

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// mostKeys limits the keys of a list.
const mostKeys = 10_000_000

// sumHeader has the SHA-256 of an object, which the store returns as it was put.
const sumHeader = "X-Amz-Meta-Sha256"

// bucket is the client of a bucket. Several goroutines may use it at a time. An operation that
// fails for a passing reason is tried again a few times, after growing waits. All errors name the
// bucket, the endpoint and, where it is known, what to do.
type bucket struct {
	settings
	name   string
	place  string // scheme and host, for messages
	client minio.Core
	close  func() // closes connections that are not in use
	failed atomic.Pointer[failedWrite]
}

// failedWrite is the last try of a put that has failed.
type failedWrite struct {
	at  time.Time
	err error
}

// openBucket returns the client of a bucket. It sends nothing.
func openBucket(c settings, name string) (*bucket, error) {
	if err := s3utils.CheckValidBucketName(name); err != nil {
		return nil, fmt.Errorf("%q is no name of a bucket: %w", name, err)
	}
	base, err := c.url()
	if err != nil {
		return nil, err
	}
	b := &bucket{settings: c, name: name, place: base.Scheme + "://" + base.Host, close: func() {}}
	t := &transport{settings: c, host: base.Host, path: base.Path, next: c.transport}
	if t.next == nil {
		network := http.DefaultTransport.(*http.Transport).Clone()
		network.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
		network.DisableCompression = true // the length of the data must be that of the object
		t.next, b.close = network, network.CloseIdleConnections
	}
	lookup := minio.BucketLookupPath
	if c.endpoint == "" && !strings.Contains(name, ".") { // certificates do not cover more dots
		lookup, t.host = minio.BucketLookupDNS, name+"."+base.Host
	}
	client, err := minio.New(base.Host, &minio.Options{
		Creds:        credentials.NewStaticV4(c.accessKey, c.secretKey, c.sessionToken),
		Secure:       base.Scheme == "https",
		Region:       c.region,
		BucketLookup: lookup,
		Transport:    t,
		MaxRetries:   1, // call tries again, also if an answer is damaged
	})
	if err != nil {
		return nil, fmt.Errorf("AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL is %q: %w", c.endpoint, err)
	}
	client.SetS3EnableDualstack(false)
	b.client = minio.Core{Client: client}
	return b, nil
}

// String returns the name of the bucket and where it is, for messages.
func (b *bucket) String() string { return fmt.Sprintf("bucket %s at %s", b.name, b.place) }

// condition says when a put changes the store. If it does not, conditionFailed reports so of the
// error. The zero condition means always.
type condition struct {
	absent bool   // only if there is no object of that key
	etag   string // only if there is one with this ETag
}

// put stores an object and returns its ETag. data is not kept. As a request may be sent again
// after it has succeeded, a condition can fail because of this put itself.
func (b *bucket) put(ctx context.Context, key string, data []byte, when condition) (etag string, err error) {
	size, md5Sum, sum := int64(len(data)), md5.Sum(data), hexSum(data)
	options := minio.PutObjectOptions{
		UserMetadata:         map[string]string{sumHeader: sum},
		DisableContentSha256: true, // of parts of the data, as sum covers the whole
	}
	if when.absent {
		options.SetMatchETagExcept("*")
	}
	if when.etag != "" {
		options.SetMatchETag(when.etag)
	}
	err = b.call(ctx, &operation{what: "write object " + key, size: size, write: true, do: func(ctx context.Context, _ func()) error {
		body := &body{data: data}
		defer body.release()
		info, err := b.client.PutObject(ctx, b.name, key, body, size, base64.StdEncoding.EncodeToString(md5Sum[:]), sum, options)
		if err == nil && info.ETag == "" {
			err = errors.New("the answer has no ETag; is this the URL of an S3 store?")
		}
		etag = info.ETag
		return err
	}})
	return etag, err
}

// object is an object of a bucket.
type object struct {
	data []byte
	etag string
	// age is the time since the object was put, by the store's clock, in whole seconds.
	age time.Duration
}

// get returns an object. It fails if the object has more than most bytes. If there is no object of
// that key, the error matches fs.ErrNotExist.
func (b *bucket) get(ctx context.Context, key string, most int64) (o *object, err error) {
	err = b.call(ctx, &operation{what: "read object " + key, size: most, do: func(ctx context.Context, _ func()) error {
		answer, info, header, err := b.client.GetObject(ctx, b.name, key, minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		defer answer.Close()
		if info.Size > most {
			return &lastingError{&damagedError{fmt.Errorf("it has %d bytes, and at most %d are expected", info.Size, most)}}
		}
		data := bytes.NewBuffer(make([]byte, 0, max(0, info.Size)+bytes.MinRead))
		if _, err := data.ReadFrom(io.LimitReader(answer, most+1)); err != nil {
			return &networkError{err}
		}
		if int64(data.Len()) > most {
			return &lastingError{&damagedError{fmt.Errorf("it has more than the %d bytes that are expected", most)}}
		}
		if want, got := header.Get(sumHeader), hexSum(data.Bytes()); want != "" && want != got {
			return &damagedError{fmt.Errorf("it is damaged: its SHA-256 is %s, and was %s", got, want)}
		}
		age, err := age(header)
		o = &object{data: data.Bytes(), etag: info.ETag, age: age}
		return err
	}})
	if err != nil {
		return nil, err
	}
	return o, nil
}

// age returns how long ago an object was put when the store sent the headers of an answer.
func age(h http.Header) (time.Duration, error) {
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0, fmt.Errorf("the answer has no time: %w", err)
	}
	put, err := http.ParseTime(h.Get("Last-Modified"))
	if err != nil {
		return 0, fmt.Errorf("the answer has no time of the object: %w", err)
	}
	return max(0, now.Sub(put)), nil
}

// list returns the keys that begin with prefix and have no slash after it.
func (b *bucket) list(ctx context.Context, prefix string) (keys []string, err error) {
	last := "" // key so far; keys are in order
	err = b.call(ctx, &operation{what: "list the objects", size: mostPage, do: func(ctx context.Context, progress func()) error {
		for o := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix, StartAfter: last}) {
			switch {
			case o.Err != nil:
				return o.Err
			case len(keys) == mostKeys:
				return &lastingError{fmt.Errorf("there are more than %d with the prefix %q", mostKeys, prefix)}
			case !strings.HasSuffix(o.Key, "/"): // otherwise it is the prefix of others
				keys = append(keys, o.Key)
			}
			last = max(last, o.Key)
			progress()
		}
		return ctx.Err() // the list ends early without an error if the context ends
	}})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

// delete removes an object. It does not fail if there is no object of that key.
func (b *bucket) delete(ctx context.Context, key string) error {
	err := b.call(ctx, &operation{what: "delete object " + key, do: func(ctx context.Context, _ func()) error {
		return b.client.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{})
	}})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// hexSum returns the SHA-256 of data in hexadecimal.
func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
