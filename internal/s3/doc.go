// Package s3 is a client of stores with the interface of Amazon S3, for small numbers of objects
// that fit in memory. It puts, gets, lists and deletes the objects of one bucket.
//
//	config, err := s3.FromEnv(os.Getenv)
//	bucket, err := s3.Open(config, "models")
//	etag, err := bucket.Put(ctx, "a/b", data, s3.Condition{})
//	object, err := bucket.Get(ctx, "a/b", 1<<20)
//	keys, err := bucket.List(ctx, "a/")
//	err = bucket.Delete(ctx, "a/b")
//
// Requests are signed by Signature V4. A request that fails for a passing reason is sent again a
// few times, after growing waits. All errors name the bucket, the endpoint and, where it is known,
// what to do. Objects carry their SHA-256, which Get verifies.
package s3
