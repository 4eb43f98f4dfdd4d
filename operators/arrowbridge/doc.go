// Package arrowbridge converts rows to and from Apache Arrow. It is the only public package
// whose API has Arrow types. These come from github.com/apache/arrow/go/v15. Programs that use
// another version of Arrow, or none, need not import this package.
//
// To exchange rows with another version of Arrow, use [WriteStream] and [ReadStream]: all
// versions read and write Arrow streams. For files use operators.ReadArrow and
// operators.WriteArrow.
//
// Conversions do not copy rows and do not change their owner: the record of a batch is the same
// object, and has the same reference count.
package arrowbridge
