package s3

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Config says how a store is reached.
type Config struct {
	// Endpoint is the URL of the store, which may have a path. Empty means Amazon's.
	Endpoint string
	Region   string

	AccessKey    string
	SecretKey    string
	SessionToken string // of temporary credentials; may be empty

	// Transport sends the requests; nil means the network.
	Transport http.RoundTripper
	// Timeout is the time that a request without data may take; 0 means 30 seconds. Requests with
	// data have a second more for each 256 KiB.
	Timeout time.Duration
	// Wait is the time before a request is sent the second time; 0 means 200 ms. It doubles with
	// every time.
	Wait time.Duration
}

// FromEnv returns the Config that the environment describes, by the variables that Amazon's tools
// use.
func FromEnv(getenv func(name string) string) (Config, error) {
	c := Config{
		Endpoint:     cmp.Or(getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL")),
		Region:       cmp.Or(getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION")),
		AccessKey:    getenv("AWS_ACCESS_KEY_ID"),
		SecretKey:    getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken: getenv("AWS_SESSION_TOKEN"),
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		if getenv(name) == "" {
			return c, fmt.Errorf("the environment variable %s is not set: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN for temporary credentials; profiles and roles of machines are not read, but `aws configure export-credentials --format env` prints theirs", name)
		}
	}
	if c.Region == "" {
		if c.Endpoint == "" {
			return c, errors.New("the environment variable AWS_REGION is not set: set it to the region of the bucket, such as us-east-1, or set AWS_ENDPOINT_URL_S3 to the URL of another store than Amazon's")
		}
		c.Region = "us-east-1" // what other stores call their only region
	}
	return c, nil
}

// Bucket is the client of a bucket. Several goroutines may use it at a time.
type Bucket struct {
	config Config
	name   string
	base   url.URL // of the bucket, without a slash at its end
	client *http.Client
	skew   clockSkew
}

// bucketNames matches the names of buckets. Stores have stricter rules of their own.
var bucketNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Open returns the client of a bucket. It sends nothing.
func Open(c Config, bucket string) (*Bucket, error) {
	if !bucketNames.MatchString(bucket) {
		return nil, fmt.Errorf("%q is no name of a bucket: letters, digits, dots and hyphens are expected", bucket)
	}
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.Wait = cmp.Or(c.Wait, 200*time.Millisecond)
	b := &Bucket{config: c, name: bucket}
	if err := b.setBase(); err != nil {
		return nil, err
	}
	if c.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
		t.DisableCompression = true // the length of the data must be that of the object
		c.Transport = t
	}
	b.client = &http.Client{
		Transport:     c.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a signature is for one host
	}
	return b, nil
}

// setBase sets the URL of the bucket. Its name is in the path, but for Amazon in the host, unless
// the name has dots, which certificates do not cover.
func (b *Bucket) setBase() error {
	if b.config.Endpoint == "" {
		host := "s3." + b.config.Region + ".amazonaws.com"
		if strings.HasPrefix(b.config.Region, "cn-") {
			host += ".cn"
		}
		b.base = url.URL{Scheme: "https", Host: b.name + "." + host}
		if strings.Contains(b.name, ".") {
			b.base = url.URL{Scheme: "https", Host: host, Path: "/" + b.name}
		}
		return nil
	}
	u, err := url.Parse(b.config.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return fmt.Errorf("AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL is %q: expected a URL such as https://store.example.com:9000", b.config.Endpoint)
	}
	b.base = url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimRight(u.Path, "/") + "/" + b.name}
	return nil
}

// String returns the name of the bucket and where it is, for messages.
func (b *Bucket) String() string {
	return fmt.Sprintf("bucket %s at %s://%s", b.name, b.base.Scheme, b.base.Host)
}

// Close closes connections that are not in use.
func (b *Bucket) Close() { b.client.CloseIdleConnections() }
