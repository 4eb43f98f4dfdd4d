package s3store

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// settings say how a store is reached.
type settings struct {
	// endpoint is the URL of the store, which may have a path. Empty means Amazon's.
	endpoint string
	region   string

	accessKey    string
	secretKey    string
	sessionToken string // of temporary credentials; may be empty

	// transport sends the requests; nil means the network.
	transport http.RoundTripper
	// timeout is the time that a request without data may take. Requests with data have a second
	// more for each 256 KiB.
	timeout time.Duration
	// wait is the time before an operation is tried the second time. It doubles with every time.
	wait time.Duration
}

// fromEnv returns the settings that the environment describes, by the variables that Amazon's
// tools use.
func fromEnv(getenv func(name string) string) (settings, error) {
	c := settings{
		endpoint:     cmp.Or(getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL")),
		region:       cmp.Or(getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION")),
		accessKey:    getenv("AWS_ACCESS_KEY_ID"),
		secretKey:    getenv("AWS_SECRET_ACCESS_KEY"),
		sessionToken: getenv("AWS_SESSION_TOKEN"),
		timeout:      30 * time.Second,
		wait:         200 * time.Millisecond,
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		if getenv(name) == "" {
			return c, fmt.Errorf("the environment variable %s is not set: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN for temporary credentials; profiles and roles of machines are not read, but `aws configure export-credentials --format env` prints theirs", name)
		}
	}
	if c.region == "" {
		if c.endpoint == "" {
			return c, errors.New("the environment variable AWS_REGION is not set: set it to the region of the bucket, such as us-east-1, or set AWS_ENDPOINT_URL_S3 to the URL of another store than Amazon's")
		}
		c.region = "us-east-1" // what other stores call their only region
	}
	return c, nil
}

// url returns the URL of the store, without a slash at its end.
func (c *settings) url() (*url.URL, error) {
	if c.endpoint == "" {
		host := "s3." + c.region + ".amazonaws.com"
		if strings.HasPrefix(c.region, "cn-") {
			host += ".cn"
		}
		return &url.URL{Scheme: "https", Host: host}, nil
	}
	u, err := url.Parse(c.endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL is %q: expected a URL such as https://store.example.com:9000", c.endpoint)
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimRight(u.Path, "/")}, nil
}
