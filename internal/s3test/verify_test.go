package s3test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPublishedSignatures requires the signatures of the examples in the Amazon S3 API Reference,
// "Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk".
func TestPublishedSignatures(t *testing.T) {
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for _, c := range []struct {
		method, uri, sum string
		signed           string
		header           map[string]string
		want             string
	}{
		{"GET", "/test.txt", empty, "host;range;x-amz-content-sha256;x-amz-date", map[string]string{"Range": "bytes=0-9"},
			"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"PUT", "/test$file.text", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072", "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
			map[string]string{"Date": "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY"},
			"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		{"GET", "/?lifecycle", empty, "host;x-amz-content-sha256;x-amz-date", nil,
			"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{"GET", "/?prefix=J&max-keys=2", empty, "host;x-amz-content-sha256;x-amz-date", nil,
			"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	} {
		r := &http.Request{Method: c.method, RequestURI: c.uri, Host: "examplebucket.s3.amazonaws.com", Header: make(http.Header)}
		for name, value := range c.header {
			r.Header.Set(name, value)
		}
		r.Header.Set("X-Amz-Date", "20130524T000000Z")
		r.Header.Set("X-Amz-Content-Sha256", c.sum)
		require.Equal(t, c.want, signature(r, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "20130524T000000Z", "us-east-1", c.signed, c.sum), c.uri)
	}
}
