package s3

import (
	"cmp"
	"crypto/tls"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"
)

// Error is an error that the store has returned.
type Error struct {
	Status  int    // of HTTP
	Code    string // such as NoSuchKey; empty if the answer was not the store's
	Message string
	Region  string // where the bucket is, if the store says so
}

// newError returns the Error of an answer.
func newError(resp *http.Response, data []byte) *Error {
	e := &Error{Status: resp.StatusCode}
	var text struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
		Region  string
	}
	if xml.Unmarshal(data, &text) == nil {
		e.Code, e.Message, e.Region = text.Code, text.Message, text.Region
	}
	e.Message = strings.TrimRight(e.Message, ".")
	e.Region = cmp.Or(resp.Header.Get("X-Amz-Bucket-Region"), e.Region)
	return e
}

// Error implements error.
func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("the answer is %d %s", e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("the answer is %d %s: %s", e.Status, e.Code, e.Message)
}

// Is makes the error of an object that is not there match fs.ErrNotExist.
func (e *Error) Is(target error) bool { return target == fs.ErrNotExist && e.Code == "NoSuchKey" }

// ConditionFailed reports whether a Put has changed nothing because of its condition.
func ConditionFailed(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusPreconditionFailed
}

// timeoutError is the error of a request that took too long.
type timeoutError struct{ limit time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("there was no answer within %v", e.limit) }

// networkError is the error of a request that got no whole answer.
type networkError struct{ error }

func (e *networkError) Unwrap() error { return e.error }

// answerError is the error of an answer that is not what was expected.
type answerError struct {
	error
	passing bool
}

func (e *answerError) Unwrap() error { return e.error }

// timeTooSkewed is the code of a request that was signed at another time than the store's. The
// answer tells the store's time.
const timeTooSkewed = "RequestTimeTooSkewed"

// passing reports whether a request may succeed if it is sent again.
func passing(err error) bool {
	var e *Error
	var answer *answerError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return false
	case errors.As(err, &answer):
		return answer.passing
	case !errors.As(err, &e):
		return true // of the network
	}
	switch e.Code {
	case "RequestTimeout", "IncompleteBody", "BadDigest", "XAmzContentSHA256Mismatch", "ConditionalRequestConflict", "OperationAborted", timeTooSkewed:
		return true
	case "NotImplemented":
		return false
	}
	return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

// advice says what a user can do about an error, or returns "".
func (b *Bucket) advice(err error) string {
	var e *Error
	var network *networkError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return "if the store has a certificate of its own authority, set SSL_CERT_FILE to that authority's file"
	case errors.As(err, &network):
		return "is AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL right, and can this machine reach it?"
	case !errors.As(err, &e):
		return ""
	}
	if e.Region != "" && e.Region != b.config.Region {
		return fmt.Sprintf("the bucket is in the region %s, and AWS_REGION is %s: set it to %s", e.Region, b.config.Region, e.Region)
	}
	switch e.Code {
	case "":
		return "is this the URL of an S3 store? It is from AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or AWS_REGION"
	case "NoSuchBucket":
		return "create the bucket, or correct its name or the endpoint"
	case "InvalidAccessKeyId":
		return "the store does not know the key in AWS_ACCESS_KEY_ID"
	case "SignatureDoesNotMatch":
		return "AWS_SECRET_ACCESS_KEY is not the secret of the key in AWS_ACCESS_KEY_ID"
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
		return "AWS_SESSION_TOKEN has expired or does not belong to AWS_ACCESS_KEY_ID: set new credentials"
	case "NotImplemented":
		return "the store lacks something that is needed here: conditional writes (If-None-Match, If-Match) and lists of version 2 are"
	case "AccessDenied":
		return "the key in AWS_ACCESS_KEY_ID must be allowed to list the bucket and to get, put and delete its objects"
	}
	return ""
}
