package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// timestamp is the layout of times in signed requests.
const timestamp = "20060102T150405Z"

// sign adds the headers of Signature V4 to a request whose URL is encoded as escape does. It signs
// all headers that the request has. sum is the SHA-256 of the body.
//
// Reference: Amazon S3 API Reference, "Signature Calculations for the Authorization Header:
// Transferring Payload in a Single Chunk".
func (c *Config) sign(r *http.Request, sum string, now time.Time) {
	at := now.UTC().Format(timestamp)
	r.Header.Set("X-Amz-Date", at)
	r.Header.Set("X-Amz-Content-Sha256", sum)
	if c.SessionToken != "" {
		r.Header.Set("X-Amz-Security-Token", c.SessionToken)
	}
	values := map[string]string{"host": r.URL.Host}
	for name, v := range r.Header {
		values[strings.ToLower(name)] = strings.Join(v, ",")
	}
	names := slices.Sorted(maps.Keys(values))
	canonical := r.Method + "\n" + r.URL.EscapedPath() + "\n" + r.URL.RawQuery + "\n"
	for _, name := range names {
		canonical += name + ":" + strings.TrimSpace(values[name]) + "\n"
	}
	signed := strings.Join(names, ";")
	canonical += "\n" + signed + "\n" + sum

	scope := at[:8] + "/" + c.Region + "/s3/aws4_request"
	text := "AWS4-HMAC-SHA256\n" + at + "\n" + scope + "\n" + hexSum([]byte(canonical))
	key := []byte("AWS4" + c.SecretKey)
	for _, part := range strings.Split(scope, "/") {
		key = mac(key, part)
	}
	r.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s",
		c.AccessKey, scope, signed, hex.EncodeToString(mac(key, text))))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// hexSum returns the SHA-256 of data in hexadecimal.
func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// escape encodes text for a URL: all bytes but letters, digits and those of "-._~" and keep.
func escape(text, keep string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~"+keep, c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// query encodes the parameters of a URL in the order in which they are signed.
func query(parameters map[string]string) string {
	var parts []string
	for name, value := range parameters {
		parts = append(parts, escape(name, "")+"="+escape(value, ""))
	}
	slices.Sort(parts)
	return strings.Join(parts, "&")
}
