package s3store

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// storeError is an error that the store has returned. Code is empty if the answer was not the
// store's.
type storeError struct{ minio.ErrorResponse }

// Error implements error.
func (e *storeError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("the answer is %d %s", e.StatusCode, http.StatusText(e.StatusCode))
	}
	return fmt.Sprintf("the answer is %d %s: %s", e.StatusCode, e.Code, strings.TrimRight(e.Message, "."))
}

// Is makes the error of an object that is not there match fs.ErrNotExist.
func (e *storeError) Is(target error) bool { return target == fs.ErrNotExist && e.Code == "NoSuchKey" }

// conditionFailed reports whether a put has changed nothing because of its condition.
func conditionFailed(err error) bool {
	var e *storeError
	return errors.As(err, &e) && e.StatusCode == http.StatusPreconditionFailed
}

// timeoutError is the error of a request that took too long.
type timeoutError struct{ limit time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("there was no answer within %v", e.limit) }

// networkError is the error of a request that got no whole answer.
type networkError struct{ error }

func (e *networkError) Unwrap() error { return e.error }

// answerError is the error of an answer that is not what was expected.
type answerError struct{ error }

func (e *answerError) Unwrap() error { return e.error }

// lastingError is an error that would be the same if the operation were tried again.
type lastingError struct{ error }

func (e *lastingError) Unwrap() error { return e.error }

// damagedError is the error of an object that is not what was put.
type damagedError struct{ error }

func (e *damagedError) Unwrap() error { return e.error }

// Damaged marks the error for checkpoint.Store.
func (e *damagedError) Damaged() bool { return true }

// cause returns what an error of the library means.
func cause(err error) error {
	var answer minio.ErrorResponse
	var wrong *answerError
	var request *url.Error
	switch {
	case errors.As(err, &wrong):
		return wrong
	case errors.As(err, &request):
		return &networkError{request.Err} // without the URL, as callers name the place
	case !errors.As(err, &answer):
		return err
	case answer.StatusCode == 0: // the library's own
		return &answerError{fmt.Errorf("the answer is no object of an S3 store: %w", err)}
	}
	if answer.XMLName.Local == "" { // the library has guessed the code
		answer.Code, answer.Message = "", ""
	}
	return &storeError{answer}
}

// passing reports whether an operation may succeed if it is tried again.
func passing(err error) bool {
	var e *storeError
	var lasting *lastingError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate), errors.As(err, &lasting):
		return false
	case !errors.As(err, &e):
		return true // of the network, or of an answer that is damaged
	}
	switch e.Code {
	case "RequestTimeout", "IncompleteBody", "BadDigest", "XAmzContentSHA256Mismatch", "ConditionalRequestConflict", "OperationAborted",
		"RequestTimeTooSkewed": // the next request has the store's time; see transport
		return true
	case "NotImplemented":
		return false
	}
	return e.StatusCode >= 500 || e.StatusCode == http.StatusTooManyRequests || e.StatusCode == http.StatusRequestTimeout
}

// advice says what a user can do about an error, or returns "".
func (b *bucket) advice(err error) string {
	var e *storeError
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
	if e.Region != "" && e.Region != b.region {
		return fmt.Sprintf("the bucket is in the region %s, and AWS_REGION is %s: set it to %s", e.Region, b.region, e.Region)
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
