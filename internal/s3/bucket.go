package s3

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"time"
)

const (
	mostKeys = 16 << 20 // bytes of a page of a list, which has 1000 keys of 1024 bytes
	mostList = 10_000   // pages of a list
)

// sumHeader has the SHA-256 of an object, which the store returns as it was put.
const sumHeader = "X-Amz-Meta-Sha256"

// Condition says when a Put changes the store. If it does not, ConditionFailed reports so of the
// error. The zero Condition means always.
type Condition struct {
	Absent bool   // only if there is no object of that key
	ETag   string // only if there is one with this ETag
}

// Put stores an object and returns its ETag. data is not kept. As a request may be sent again
// after it has succeeded, a condition can fail because of this Put itself.
func (b *Bucket) Put(ctx context.Context, key string, data []byte, when Condition) (etag string, err error) {
	sum := md5.Sum(data)
	header := map[string]string{"Content-Md5": base64.StdEncoding.EncodeToString(sum[:]), sumHeader: hexSum(data)}
	if when.Absent {
		header["If-None-Match"] = "*"
	}
	if when.ETag != "" {
		header["If-Match"] = when.ETag
	}
	a, err := b.call(ctx, &request{method: http.MethodPut, key: key, header: header, body: data, most: mostError})
	if err != nil {
		return "", err
	}
	return a.header.Get("Etag"), nil
}

// Object is an object of a bucket.
type Object struct {
	Data []byte
	ETag string
	// Age is the time since the object was put, by the store's clock, in whole seconds.
	Age time.Duration
}

// Get returns an object. It fails if the object has more than most bytes. If there is no object of
// that key, the error matches fs.ErrNotExist.
func (b *Bucket) Get(ctx context.Context, key string, most int64) (*Object, error) {
	var age time.Duration
	a, err := b.call(ctx, &request{method: http.MethodGet, key: key, most: most, check: func(a *answer) error {
		if want, got := a.header.Get(sumHeader), hexSum(a.body); want != "" && want != got {
			return fmt.Errorf("it is damaged: its SHA-256 is %s, and was %s", got, want)
		}
		now, err := http.ParseTime(a.header.Get("Date"))
		if err != nil {
			return fmt.Errorf("the answer has no time: %w", err)
		}
		put, err := http.ParseTime(a.header.Get("Last-Modified"))
		if err != nil {
			return fmt.Errorf("the answer has no time of the object: %w", err)
		}
		age = max(0, now.Sub(put))
		return nil
	}})
	if err != nil {
		return nil, err
	}
	return &Object{Data: a.body, ETag: a.header.Get("Etag"), Age: age}, nil
}

// listPage is a part of a list of objects.
type listPage struct {
	XMLName  xml.Name `xml:"ListBucketResult"`
	Encoding string   `xml:"EncodingType"`
	Contents []struct{ Key string }
	More     bool   `xml:"IsTruncated"`
	Next     string `xml:"NextContinuationToken"`
}

// List returns the keys that begin with prefix and have no slash after it.
func (b *Bucket) List(ctx context.Context, prefix string) (keys []string, err error) {
	parameters := map[string]string{"list-type": "2", "prefix": prefix, "delimiter": "/", "encoding-type": "url"}
	for range mostList {
		var page listPage
		_, err := b.call(ctx, &request{method: http.MethodGet, query: parameters, most: mostKeys, check: func(a *answer) error {
			page = listPage{}
			if err := xml.Unmarshal(a.body, &page); err != nil {
				return fmt.Errorf("the answer is no list of objects; is this the URL of an S3 store? %w", err)
			}
			if page.More && page.Next == "" {
				return errors.New("the answer is a part of a list, but does not say how to go on")
			}
			return nil
		}})
		if err != nil {
			return nil, err
		}
		for _, c := range page.Contents {
			key := c.Key
			if page.Encoding == "url" {
				if key, err = url.QueryUnescape(key); err != nil {
					return nil, fmt.Errorf("list the objects of %s: %w", b, err)
				}
			}
			keys = append(keys, key)
		}
		if !page.More {
			return keys, nil
		}
		parameters["continuation-token"] = page.Next
	}
	return nil, fmt.Errorf("list the objects of %s: there are more than %d with the prefix %q", b, mostList*1000, prefix)
}

// Delete removes an object. It does not fail if there is no object of that key.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	_, err := b.call(ctx, &request{method: http.MethodDelete, key: key, most: mostError})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
