package s3test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"sort"
	"strings"
	"time"
)

// authorization matches the header of Signature V4: key, date, region, headers, signature.
var authorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$`)

// longestSkew is the largest difference of clocks that a store accepts.
const longestSkew = 15 * time.Minute

// verify returns an error if a request is not signed by the server's key for this time. It shares
// no code with the client's side, so that both cannot be wrong in the same way.
func (s *Server) verify(r *http.Request, body []byte, now time.Time) error {
	parts := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if parts == nil {
		return &failure{403, "AccessDenied", "Access Denied."}
	}
	stamp, sum := r.Header.Get("X-Amz-Date"), r.Header.Get("X-Amz-Content-Sha256")
	at, err := time.Parse("20060102T150405Z", stamp)
	signed := ";" + parts[4] + ";"
	received := sha256.Sum256(body)
	switch {
	case err != nil || !strings.HasPrefix(stamp, parts[2]):
		return &failure{403, "AccessDenied", "a date is wrong"}
	case parts[1] != s.AccessKey:
		return &failure{403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."}
	case at.Sub(now).Abs() > longestSkew:
		return &failure{403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."}
	case parts[3] != s.Region:
		return &failure{400, "AuthorizationHeaderMalformed", "the region is wrong</Message><Region>" + s.Region + "</Region><Message>"}
	case r.Header.Get("X-Amz-Security-Token") != s.Token:
		return &failure{400, "InvalidToken", "The provided token is malformed or otherwise invalid."}
	case sum != hex.EncodeToString(received[:]):
		return &failure{400, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed."}
	}
	for name := range r.Header {
		name = strings.ToLower(name)
		if (strings.HasPrefix(name, "x-amz-") || strings.HasPrefix(name, "if-") || name == "content-md5") && !strings.Contains(signed, ";"+name+";") {
			return &failure{403, "AccessDenied", "the header " + name + " is not signed"}
		}
	}
	if !strings.Contains(signed, ";host;") || signature(r, s.SecretKey, stamp, parts[3], parts[4], sum) != parts[5] {
		return &failure{403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided."}
	}
	return nil
}

// signature computes the Signature V4 of a request as it was received.
func signature(r *http.Request, secret, stamp, region, signed, sum string) string {
	path, rawQuery, _ := strings.Cut(r.RequestURI, "?")
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return ""
		}
		segments[i] = encoded(plain)
	}
	var pairs []string
	for pair := range strings.SplitSeq(rawQuery, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, errName := url.PathUnescape(name) // unlike url.QueryUnescape, this leaves a plus sign
		value, errValue := url.PathUnescape(value)
		if errName != nil || errValue != nil {
			return ""
		}
		pairs = append(pairs, encoded(name)+"="+encoded(value))
	}
	sort.Strings(pairs)
	lines := []string{r.Method, strings.Join(segments, "/"), strings.Join(pairs, "&")}
	for name := range strings.SplitSeq(signed, ";") {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		lines = append(lines, name+":"+value)
	}
	lines = append(lines, "", signed, sum)
	request := sha256.Sum256([]byte(strings.Join(lines, "\n")))

	key := []byte("AWS4" + secret)
	for _, text := range []string{stamp[:8], region, "s3", "aws4_request"} {
		key = hmacSum(key, text)
	}
	return hex.EncodeToString(hmacSum(key, fmt.Sprintf("AWS4-HMAC-SHA256\n%s\n%s/%s/s3/aws4_request\n%x", stamp, stamp[:8], region, request)))
}

func hmacSum(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	fmt.Fprint(h, text)
	return h.Sum(nil)
}

// encoded encodes text as Signature V4 wants it: every byte that is not unreserved in RFC 3986.
func encoded(text string) string {
	// url.QueryEscape leaves exactly the unreserved bytes, and writes a space as a plus sign.
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
